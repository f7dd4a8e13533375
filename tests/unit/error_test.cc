#include "gantry/error.h"

#include <c10/util/Exception.h>
#include <doctest/doctest.h>

#include <functional>

#include "gantry/catalogue.h"

namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (...) {
    return gantry::current_exception_message();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("the message of any exception is its text alone") {
  CHECK(message_of([] { throw std::runtime_error("disk full"); }) == "disk full");
  CHECK(message_of([] { throw gantry::ConfigError({"a.yaml", 3, 0}, "no"); }) == "a.yaml:3: no");
  CHECK(message_of([] { throw 7; }) == "an exception that carries no message");
  const std::string torch = message_of([] { TORCH_CHECK(false, "shapes differ"); });
  CHECK(torch.find("shapes differ") == 0);
  CHECK(torch.find("Exception raised from") == std::string::npos);
}

TEST_CASE("an error of a component names who and when and where") {
  gantry::ComponentInfo info;
  info.plugin = "acme-gradnorm";
  info.version = "1.0.0";
  info.file = "/p/acme.so";
  gantry::ComponentError::Origin origin;
  origin.component = "hook acme/GradNorm";
  origin.plugin = info.origin();
  origin.point = "after_iter";
  origin.mode = "train";
  origin.iteration = 12;
  origin.where = {"a.yaml", 14, 1};
  const gantry::ComponentError error(origin, "no gradient");
  CHECK(std::string(error.what()) ==
        "a.yaml:14: hook acme/GradNorm of plugin acme-gradnorm 1.0.0 (/p/acme.so) failed in after_iter at train "
        "iteration 12: no gradient");
  CHECK(error.cause() == "no gradient");
}
