#include <doctest/doctest.h>
#include <gantry/session.h>

#include <limits>

TEST_CASE("the report of a run names its checkpoint and its best values") {
  gantry::RunReport report;
  report.status = gantry::RunStatus::interrupted;
  CHECK(report.json().find(R"("best": {}, "checkpoint": null)") != std::string::npos);
  report.checkpoint = "/w/checkpoints/ldm_step-20";
  report.best = {{"eval/acc@1", 0.5}, {"eval/\"loss\"", std::numeric_limits<double>::infinity()}};
  CHECK(report.json().find(
            R"("best": {"eval/acc@1": 0.5, "eval/\"loss\"": null}, "checkpoint": "/w/checkpoints/ldm_step-20")") !=
        std::string::npos);
}
