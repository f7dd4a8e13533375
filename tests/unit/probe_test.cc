#include "gantry/probe.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <doctest/doctest.h>

#include <string>

#include "gantry/error.h"

namespace {

using gantry::Probe;
using gantry::Probes;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const gantry::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

Probes wanted() {
  Probes probes;
  probes.request();
  return probes;
}

}  // namespace

TEST_CASE("what nobody wants is not kept") {
  Probes probes;
  CHECK_FALSE(probes.wanted());
  probes.number("a", 1);
  probes.tensor("b", at::ones({2}));
  probes.image("c", at::ones({1, 2, 2}));
  CHECK(probes.entries().empty());
  probes.request();
  CHECK(probes.wanted());
  probes.number("a", 1);
  CHECK(probes.entries().size() == 1);
  probes.clear();
  CHECK_FALSE(probes.wanted());
  CHECK(probes.entries().empty());
}

TEST_CASE("everything that is shown is there under its name in its order") {
  Probes probes = wanted();
  probes.image("in/pictures", at::ones({2, 3, 4, 5}), {"x", "y"});
  probes.tensor("t", at::arange(3));
  probes.number("n", 1.5);
  probes.text("s", "words");
  probes.distribution("d", at::arange(4).view({2, 2}));
  REQUIRE(probes.entries().size() == 5);
  CHECK(probes.entries()[0].name == "in/pictures");
  CHECK(probes.entries()[4].name == "d");
  REQUIRE(probes.find("in/pictures") != nullptr);
  CHECK(probes.find("in/pictures")->kind == Probe::Kind::image);
  CHECK(probes.find("in/pictures")->labels == std::vector<std::string>{"x", "y"});
  CHECK(probes.find("t")->value.equal(at::arange(3)));
  CHECK(probes.find("n")->number == 1.5);
  CHECK(probes.find("s")->labels == std::vector<std::string>{"words"});
  CHECK(probes.find("d")->value.sizes() == at::IntArrayRef({2, 2}));
  CHECK(probes.find("nothing") == nullptr);
}

TEST_CASE("a name that is shown again replaces what it showed also when it is of another kind") {
  Probes probes = wanted();
  probes.image("x", at::ones({1, 2, 2}), {"label"});
  probes.number("y", 1);
  probes.number("x", 7);
  REQUIRE(probes.entries().size() == 2);
  CHECK(probes.entries()[0].name == "x");
  CHECK(probes.entries()[0].kind == Probe::Kind::number);
  CHECK(probes.entries()[0].number == 7);
  CHECK(probes.entries()[0].labels.empty());
  CHECK_FALSE(probes.entries()[0].value.defined());
}

TEST_CASE("what is shown stays as it was and needs no graph") {
  Probes probes = wanted();
  at::Tensor value = at::zeros({3}), counted = at::zeros({3}), picture = at::zeros({1, 2, 2});
  value.requires_grad_(true);
  probes.tensor("t", value);
  probes.distribution("d", counted);
  probes.image("i", picture);
  value.data().fill_(5);
  counted.fill_(5);
  picture.fill_(1);
  for (const char* name : {"t", "d", "i"}) {
    CHECK(probes.find(name)->value.equal(at::zeros_like(probes.find(name)->value)));
    CHECK_FALSE(probes.find(name)->value.requires_grad());
  }
}

TEST_CASE("bad probes are refused with their name and what they got") {
  Probes probes = wanted();
  const auto image = [&](const at::Tensor& tensor, std::vector<std::string> labels = {}) {
    return error_of([&] { probes.image("my/map", tensor, std::move(labels)); });
  };
  CHECK(image(at::ones({4, 4})) ==
        "the probe 'my/map' shows pictures, [C, H, W] or [N, C, H, W]; it got float32 [4, 4]");
  CHECK(image(at::ones({2, 4, 4})) == "the probe 'my/map' shows pictures of 1 or 3 channels; it got float32 [2, 4, 4]");
  CHECK(image(at::ones({0, 1, 4, 4})) == "the probe 'my/map' has no pixel to show; it got float32 [0, 1, 4, 4]");
  CHECK(image(at::ones({1, 4, 4}, at::kLong)).find("it got int64 [1, 4, 4]") != std::string::npos);
  CHECK(image(at::Tensor()).find("it got undefined") != std::string::npos);
  CHECK(image(at::ones({3, 1, 4, 4}), {"one", "two"}) ==
        "the probe 'my/map' has 2 labels for 3 pictures; give one for each, or none");
  CHECK(image(at::ones({1, 4, 4}), {"one", "two"}).find("2 labels for 1 picture;") != std::string::npos);
  CHECK(error_of([&] { probes.tensor("t", at::Tensor()); }) == "the probe 't' shows a tensor; it got an undefined one");
  CHECK(error_of([&] { probes.distribution("d", at::Tensor()); }).find("'d'") != std::string::npos);
  CHECK(error_of([&] { probes.distribution("d", at::ones({2}, at::kComplexFloat)); }).find("real numbers") !=
        std::string::npos);
  CHECK(error_of([&] { probes.number("", 1); }).find("needs a name") != std::string::npos);
  CHECK(probes.entries().empty());
}
