#include "gantry/state.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "gantry/error.h"
#include "unit/messages.h"

using gantry::State;

namespace {

std::vector<std::string> paths(const State& state) {
  std::vector<std::string> result;
  for (const State::Leaf& leaf : state.leaves()) result.push_back(leaf.path);
  return result;
}

}  // namespace

TEST_CASE("leaves keep the order in which they were set and are found by path") {
  State state;
  const std::vector<std::string> names = {"m", "z/b", "a", "z", "b/c/d", "A", "z/a"};
  for (std::size_t i = 0; i < names.size(); ++i) state.set_int(names[i], static_cast<int64_t>(i));
  CHECK(paths(state) == names);
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(state.integer(names[i]) == static_cast<int64_t>(i));
  CHECK_FALSE(state.has("z/"));
  CHECK_FALSE(state.has("zz"));
  CHECK_FALSE(state.has(""));
}

TEST_CASE("numbers and text of a state read back exactly") {
  State state;
  state.set_int("big", std::numeric_limits<int64_t>::max());
  state.set_double("third", 1.0 / 3.0);
  state.set_double("nan", std::nan(""));
  state.set_text("text", std::string_view("a\0\xff\n", 4));
  state.set_text("no text", "");
  CHECK(state.integer("big") == std::numeric_limits<int64_t>::max());
  CHECK(state.number("third") == 1.0 / 3.0);
  CHECK(std::isnan(state.number("nan")));
  CHECK(state.text("text") == std::string("a\0\xff\n", 4));
  CHECK(state.text("no text").empty());
  CHECK(state.tensor("big").dim() == 0);
  CHECK((state.tensor("third").scalar_type() == at::kDouble));
}

TEST_CASE("a state holds its tensors as aliases") {
  State state;
  const at::Tensor weight = at::zeros({2});
  state.set("weight", weight);
  const State copy = state;
  weight.fill_(3);
  CHECK(copy.tensor("weight").sum().item<float>() == 6);
}

TEST_CASE("reading an absent leaf or one of another type names its path") {
  State state;
  state.set_double("lr", 0.1);
  state.set("w", at::zeros({2, 3}));
  CHECK(contains(message_of([&] { state.tensor("epoch"); }), "epoch"));
  CHECK(contains(message_of([&] { state.integer("lr"); }), "'lr'"));
  CHECK(contains(message_of([&] { state.integer("lr"); }), "float64"));
  CHECK(contains(message_of([&] { state.number("w"); }), "float32 [2, 3]"));
  CHECK(contains(message_of([&] { state.text("w"); }), "'w'"));
}

TEST_CASE("an empty or taken path and an undefined tensor are refused") {
  State state;
  state.set_int("a", 1);
  CHECK_THROWS_AS(state.set_int("a", 2), std::logic_error);
  CHECK_THROWS_AS(state.set_int("", 2), std::logic_error);
  CHECK_THROWS_AS(state.set("b", at::Tensor()), std::logic_error);
  CHECK(state.integer("a") == 1);
  CHECK(state.leaves().size() == 1);
}

TEST_CASE("child gives back what merge took in and stops at whole path parts") {
  State optimizer;
  optimizer.set_int("step", 7);
  optimizer.set_shard("fc/momentum", at::zeros({2, 3}), {4, 3}, {2, 0});
  State state;
  state.set_int("optimizer", 1);
  state.set_int("optimizers/step", 2);
  state.merge("optimizer", optimizer);
  CHECK(paths(state) ==
        std::vector<std::string>{"optimizer", "optimizers/step", "optimizer/step", "optimizer/fc/momentum"});
  const State child = state.child("optimizer");
  CHECK(paths(child) == paths(optimizer));
  CHECK(child.integer("step") == 7);
  CHECK(child.leaves()[1].global_shape == std::vector<int64_t>{4, 3});
  CHECK(child.leaves()[1].offset == std::vector<int64_t>{2, 0});
  CHECK(state.child("optim").empty());
  CHECK_THROWS_AS(state.merge("optimizer", optimizer), std::logic_error);
}

TEST_CASE("a shard that reaches out of its whole is refused") {
  State state;
  CHECK_THROWS_AS(state.set_shard("w", at::zeros({2, 3}), {4, 3}, {3, 0}), std::logic_error);
  CHECK_THROWS_AS(state.set_shard("w", at::zeros({2, 3}), {4, 3}, {-1, 0}), std::logic_error);
  CHECK_THROWS_AS(state.set_shard("w", at::zeros({2, 3}), {6}, {0}), std::logic_error);
  CHECK(state.empty());
}

TEST_CASE("differences of states name what is missing and unexpected and both sides of a mismatch") {
  State saved, expected;
  saved.set("same", at::zeros({2}));
  expected.set("same", at::ones({2}));
  saved.set("shape", at::zeros({3, 2}));
  expected.set("shape", at::zeros({4, 2}));
  saved.set("dtype", at::zeros({1}, at::kDouble));
  expected.set("dtype", at::zeros({1}));
  saved.set_int("old", 1);
  expected.set_int("new", 1);
  CHECK(gantry::state_differences(saved, expected) ==
        std::vector<std::string>{"shape: float32 [3, 2] in the checkpoint, float32 [4, 2] here",
                                 "dtype: float64 [1] in the checkpoint, float32 [1] here", "missing: new",
                                 "unexpected: old"});
  CHECK(gantry::state_differences(saved, saved).empty());
  CHECK(gantry::state_differences(State(), State()).empty());
}

TEST_CASE("a shard differs from a whole tensor only where the whole shapes differ") {
  State saved, expected;
  saved.set("w", at::zeros({4, 3}));
  expected.set_shard("w", at::zeros({2, 3}), {4, 3}, {2, 0});
  CHECK(gantry::state_differences(saved, expected).empty());
  State other;
  other.set_shard("w", at::zeros({2, 3}), {5, 3}, {2, 0});
  CHECK(gantry::state_differences(saved, other) ==
        std::vector<std::string>{"w: float32 [4, 3] in the checkpoint, float32 [5, 3] here"});
}
