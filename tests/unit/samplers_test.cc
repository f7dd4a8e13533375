#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "gantry/sampler.h"
#include "unit/messages.h"
#include "unit/nested_plugins.h"

using gantry::Sampler;
using Indices = std::vector<int64_t>;

namespace {

std::unique_ptr<Sampler> sampler(const std::string& name,
                                 std::vector<std::pair<std::string, gantry::Config>> config = {}) {
  // Contexts live as long as the plugins that gave them; samplers of these plugins keep none.
  static NestedPlugins plugins({"gantry-samplers", "gantry-default-sampler"});
  return plugins.build<Sampler>(name, map_config(std::move(config)));
}

Indices counted(int64_t first, int64_t end) {
  Indices indices(static_cast<std::size_t>(end - first));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

Indices sorted(Indices indices) {
  std::sort(indices.begin(), indices.end());
  return indices;
}

Indices part(const Indices& indices, std::size_t begin, std::size_t end) {
  return {indices.begin() + static_cast<std::ptrdiff_t>(begin), indices.begin() + static_cast<std::ptrdiff_t>(end)};
}

void check_pure(const Sampler& sampler) {
  const Indices order = sampler.order({50, 1, 1, true});
  CHECK(static_cast<int64_t>(order.size()) == sampler.size(50));
  CHECK(sampler.order({50, 1, 1, true}) == order);
  CHECK(sampler.order({50, 1, 2, true}) != order);
  CHECK(sampler.order({50, 2, 1, true}) != order);
}

gantry::Config number(const char* text) { return text_config(text); }

}  // namespace

TEST_CASE("SequentialSampler keeps the order also where data are shuffled") {
  CHECK(sampler("SequentialSampler")->order({7, 1, 3, true}) == counted(0, 7));
  const auto some = sampler("SequentialSampler", {{"FROM", number("2")}, {"UNTIL", number("5")}});
  CHECK(some->size(7) == 3);
  CHECK(some->order({7, 1, 3, true}) == counted(2, 5));
  CHECK(sampler("SequentialSampler")->size(0) == 0);
}

TEST_CASE("LoopSampler draws each index alike and independently") {
  const auto loop = sampler("LoopSampler", {{"SIZE", number("12000")}});
  check_pure(*loop);
  CHECK(loop->size(6) == 12000);
  const Indices order = loop->order({6, 1, 1, true});
  std::vector<int64_t> seen(6), next_to_itself(6);
  for (std::size_t i = 0; i < order.size(); ++i) {
    REQUIRE(order[i] >= 0);
    REQUIRE(order[i] < 6);
    ++seen[static_cast<std::size_t>(order[i])];
    if (i > 0 && order[i] == order[i - 1]) ++next_to_itself[static_cast<std::size_t>(order[i])];
  }
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(seen[i] > 1840);  // 2000 expected, standard deviation 41
    CHECK(seen[i] < 2160);
    CHECK(next_to_itself[i] > 260);  // 333 expected, 18
    CHECK(next_to_itself[i] < 410);
  }
}

TEST_CASE("LoopSampler draws as many as there are unless told and from its range alone") {
  CHECK(sampler("LoopSampler")->size(50) == 50);
  const auto some = sampler("LoopSampler", {{"FROM", number("10")}, {"UNTIL", number("14")}});
  CHECK(some->size(50) == 4);
  std::set<int64_t> seen;
  for (int64_t epoch = 1; epoch <= 40; ++epoch)
    for (const int64_t index : some->order({50, 1, epoch, false})) seen.insert(index);
  CHECK(seen == std::set<int64_t>{10, 11, 12, 13});
  CHECK(sampler("LoopSampler", {{"SIZE", number("8")}})->size(0) == 0);
}

TEST_CASE("a range outside of the dataset is refused with both numbers") {
  const auto message = [](std::vector<std::pair<std::string, gantry::Config>> config) {
    return message_of<gantry::ConfigError>([&] { sampler("SequentialSampler", std::move(config))->size(50); });
  };
  CHECK(contains(message({{"FROM", number("5")}, {"UNTIL", number("5")}}),
                 "UNTIL is 5, which should be more than FROM, 5"));
  CHECK(contains(message({{"UNTIL", number("51")}}), "UNTIL is 51, but the dataset has 50 samples"));
  CHECK(contains(message({{"FROM", number("50")}}), "FROM is 50, but the dataset has 50 samples"));
  CHECK(message({{"UNTIL", number("50")}}) == "nothing was thrown");
}

TEST_CASE("MultiFoldSampler goes through all of the data once per fold and in an order of its own each time") {
  const auto folds = sampler("MultiFoldSampler", {{"NUM_FOLDS", number("3")}});
  check_pure(*folds);
  CHECK(folds->size(20) == 60);
  std::set<Indices> orders;
  for (int64_t epoch = 1; epoch <= 4; ++epoch) {
    const Indices order = folds->order({20, 1, epoch, true});
    REQUIRE(order.size() == 60);
    for (std::size_t fold = 0; fold < 3; ++fold) {
      const Indices one = part(order, 20 * fold, 20 * fold + 20);
      CHECK(sorted(one) == counted(0, 20));
      orders.insert(one);
    }
  }
  CHECK(orders.size() == 12);
}

TEST_CASE("MultiFoldSampler honours the seed") {
  const auto folds = sampler("MultiFoldSampler", {{"NUM_FOLDS", number("2")}});
  CHECK(folds->order({20, 1, 1, true}) != folds->order({20, 2, 1, true}));
  CHECK(folds->order({20, 1, 1, false}) == folds->order({20, 2, 1, false}));
}

TEST_CASE("MultiFoldSampler repeats the sampler that it is given") {
  const auto folds = sampler(
      "MultiFoldSampler",
      {{"NUM_FOLDS", number("2")}, {"SAMPLER", component_config("SequentialSampler", {{"UNTIL", number("3")}})}});
  CHECK(folds->order({20, 1, 1, true}) == Indices{0, 1, 2, 0, 1, 2});
  const auto many = sampler("MultiFoldSampler", {{"NUM_FOLDS", number("1000000")}});
  CHECK(contains(message_of<gantry::ConfigError>([&] { many->size(2000); }), "1000000 times 2000 samples"));
}

TEST_CASE("MixtureOfSamplers takes exactly its share from each and all that each has before anything again") {
  // Indices below 10 are those of the first.
  const auto mixture =
      sampler("MixtureOfSamplers",
              {{"SUB_SAMPLERS", components_config({component_config("SequentialSampler", {{"UNTIL", number("10")}}),
                                                   component_config("SequentialSampler", {{"FROM", number("10")}})})},
               {"PROBS", list_config({"3", "1"})},
               {"SIZE", number("16")}});
  check_pure(*mixture);
  CHECK(mixture->size(50) == 16);
  Indices first, second;
  bool mixed = false;
  for (int64_t epoch = 1; epoch <= 5; ++epoch) {
    const Indices order = mixture->order({50, 1, epoch, true});
    const auto below = std::count_if(order.begin(), order.end(), [](int64_t index) { return index < 10; });
    CHECK(below == 12);
    mixed = mixed || !std::is_partitioned(order.begin(), order.end(), [](int64_t index) { return index < 10; });
    for (const int64_t index : order) (index < 10 ? first : second).push_back(index);
  }
  CHECK(mixed);
  REQUIRE(first.size() == 60);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] == static_cast<int64_t>(i % 10));
  CHECK(second == counted(10, 30));
}

TEST_CASE("MixtureOfSamplers mixes evenly and two samplers of one kind are independent") {
  const auto mixture =
      sampler("MixtureOfSamplers",
              {{"SUB_SAMPLERS", components_config({component_config("LoopSampler", {{"UNTIL", number("25")}}),
                                                   component_config("LoopSampler", {{"FROM", number("25")}})})}});
  CHECK(mixture->size(50) == 50);
  std::vector<int> from_first(50);
  int alike = 0;
  for (int64_t epoch = 1; epoch <= 400; ++epoch) {
    const Indices order = mixture->order({50, 1, epoch, true});
    Indices first, second;
    for (std::size_t i = 0; i < order.size(); ++i) {
      from_first[i] += order[i] < 25;
      (order[i] < 25 ? first : second).push_back(order[i] % 25);
    }
    REQUIRE(first.size() == 25);
    for (std::size_t i = 0; i < 25; ++i) alike += first[i] == second[i];
  }
  for (const int count : from_first) {
    CHECK(count > 155);  // 200 expected, standard deviation 10
    CHECK(count < 245);
  }
  CHECK(alike > 300);  // 10000 pairs, 400 expected, 20
  CHECK(alike < 500);
}

TEST_CASE("MixtureOfSamplers refuses shares that do not fit") {
  const auto message = [](std::vector<std::string> shares, const char* size) {
    return message_of<gantry::ConfigError>([&] {
      sampler("MixtureOfSamplers",
              {{"SUB_SAMPLERS", components_config({component_config("LoopSampler"), component_config("LoopSampler")})},
               {"PROBS", list_config(shares)},
               {"SIZE", number(size)}})
          ->size(50);
    });
  };
  CHECK(contains(message({"1"}, "10"), "PROBS has 1 number, SUB_SAMPLERS has 2"));
  CHECK(contains(message({"0", "0"}, "10"), "PROBS needs a finite number above 0"));
  CHECK(contains(message({"0.99", "0.01"}, "10"), "gives SUB_SAMPLERS[1] a share of 0.01"));
  CHECK(message({"1", "0"}, "10") == "nothing was thrown");
  CHECK(message({"0.99", "0.01"}, "100") == "nothing was thrown");
}
