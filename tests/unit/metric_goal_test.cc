#include "gantry/metric_goal.h"

#include <doctest/doctest.h>

#include <cmath>

#include "config_files.h"
#include "messages.h"

using gantry::MetricGoal;

namespace {

MetricGoal goal(const std::string& text) { return MetricGoal(flow("{BY: '" + text + "'}", "a.yaml", 3), "BY"); }

}  // namespace

TEST_CASE("a metric has the sign before its name as its direction") {
  CHECK(goal("+acc@1").metric() == "acc@1");
  CHECK_FALSE(goal("+acc@1").lower_is_better());
  CHECK(goal("acc@1").text() == "+acc@1");
  CHECK(goal("-loss").metric() == "loss");
  CHECK(goal("-loss").lower_is_better());
  CHECK(goal("-loss").text() == "-loss");
  CHECK(goal("").none());
  CHECK(goal("").text().empty());
  CHECK(message_of<gantry::ConfigError>([] { goal("-"); }) == "a.yaml:3: BY names no metric: write +acc@1 or -loss");
}

TEST_CASE("better means by more than the least difference and NaN never is") {
  CHECK(goal("+a").better(-1, -2));
  CHECK_FALSE(goal("+a").better(-2, -1));
  CHECK(goal("-a").better(-2, -1));
  CHECK_FALSE(goal("-a").better(1, 1));
  CHECK_FALSE(goal("+a").better(1.5, 1, 0.5));
  CHECK(goal("+a").better(1.75, 1, 0.5));
  CHECK_FALSE(goal("-a").better(0.5, 1, 0.5));
  CHECK(goal("-a").better(0.25, 1, 0.5));
  for (const char* text : {"+a", "-a"}) CHECK_FALSE(goal(text).better(std::nan(""), 0));
}

TEST_CASE("a metric that there is not is told with a near name and all names") {
  gantry::Scalars metrics;
  CHECK(message_of([&] { goal("+acc").value_in(metrics); }) ==
        "BY is 'acc', which the evaluation does not have. It has: nothing");
  metrics.set("loss", 1);
  metrics.set("acc@1", 0.5);
  CHECK(goal("acc@1").value_in(metrics) == 0.5);
  CHECK(message_of([&] { goal("+acc@2").value_in(metrics); }) ==
        "BY is 'acc@2', which the evaluation does not have; did you mean 'acc@1'? It has: loss, acc@1");
}
