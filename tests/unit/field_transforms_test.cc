#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "gantry/transform.h"
#include "unit/messages.h"
#include "unit/plugin_under_test.h"

using gantry::Batch;
using gantry::Sample;
using gantry::Transform;

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

std::unique_ptr<Transform> transform(const std::string& name, Keys config) {
  return PluginUnderTest("gantry-field-transforms").build<Transform>(name, map_config(std::move(config)));
}

Batch batch_of_two() {
  Batch batch;
  batch.set("x", at::arange(6, at::kDouble).view({2, 3}));
  batch.set("text", std::vector<std::string>{"7", "-12"});
  batch.set("whole", int64_t{5});
  batch.set("number", 0.5);
  batch.ids = {0, 1};
  return batch;
}

std::string names(const gantry::Fields& fields) {
  std::string all;
  for (const auto& [name, value] : fields.entries()) all += name + " ";
  return all;
}

template <class F>
std::string refusal(F f) {
  return message_of<gantry::ConfigError>(f);
}

bool is(const at::Tensor& tensor, const at::Tensor& expected) {
  return tensor.scalar_type() == expected.scalar_type() && tensor.equal(expected);
}

}  // namespace

TEST_CASE("ToTensor makes a number of a batch one for each sample and a sample's a single one") {
  const auto to_tensor = transform("ToTensor", {{"KEYS", list_config({"whole", "number", "x"})}});
  Batch batch = batch_of_two();
  const at::Tensor x = batch.tensor("x");
  to_tensor->apply_batch(batch, 1, 0);
  CHECK(is(batch.tensor("whole"), at::tensor({5, 5}, at::kLong)));
  CHECK(is(batch.tensor("number"), at::tensor({0.5, 0.5}, at::kFloat)));
  CHECK(is(batch.tensor("x"), x));
  Sample sample{{"whole", int64_t{3}}, {"number", 0.25}, {"x", x}};
  gantry::CounterRng rng(0, 0, 0);
  to_tensor->apply(sample, rng);
  CHECK(is(sample.tensor("whole"), at::full({}, 3, at::kLong)));
  CHECK(is(sample.tensor("number"), at::full({}, 0.25, at::kFloat)));
}

TEST_CASE("ToTensor gives the type that is asked for and reads texts") {
  Batch batch = batch_of_two();
  batch.set("list", std::vector<at::Tensor>{at::zeros({2}), at::zeros({3})});
  transform("ToTensor", {{"KEYS", list_config({"x", "whole", "list"})}, {"DTYPE", text_config("float32")}})
      ->apply_batch(batch, 1, 0);
  CHECK(is(batch.tensor("x"), at::arange(6, at::kFloat).view({2, 3})));
  CHECK(is(batch.tensor("whole"), at::tensor({5, 5}, at::kFloat)));
  transform("ToTensor", {{"KEYS", text_config("list")}, {"DTYPE", text_config("int32")}})->apply_batch(batch, 1, 0);
  const auto& list = std::get<std::vector<at::Tensor>>(*batch.find("list"));
  CHECK(is(list[1], at::zeros({3}, at::kInt)));

  const auto texts = transform("ToTensor", {{"KEYS", text_config("text")}, {"DTYPE", text_config("int64")}});
  texts->apply_batch(batch, 1, 0);
  CHECK(is(batch.tensor("text"), at::tensor({7, -12}, at::kLong)));
  Sample sample{{"text", std::vector<std::string>{"2.5"}}};
  gantry::CounterRng rng(0, 0, 0);
  transform("ToTensor", {{"KEYS", text_config("text")}, {"DTYPE", text_config("float32")}})->apply(sample, rng);
  CHECK(is(sample.tensor("text"), at::full({}, 2.5, at::kFloat)));
}

TEST_CASE("ToTensor refuses texts that are no numbers and names that there are not") {
  const auto message = [](Keys keys, const char* text = "x") {
    Batch batch = batch_of_two();
    batch.set("text", std::vector<std::string>{"1", text});
    return message_of([&] { transform("ToTensor", std::move(keys))->apply_batch(batch, 1, 0); });
  };
  CHECK(contains(message({{"KEYS", text_config("nothing")}}), "there is no 'nothing' here, only: x, text"));
  CHECK(contains(message({{"KEYS", text_config("text")}}), "say with DTYPE"));
  const Keys integers = {{"KEYS", text_config("text")}, {"DTYPE", text_config("int64")}};
  for (const char* text : {"x", "", "1.5", "3 ", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK(contains(message(integers, text), std::string("the text '") + text + "': it is no number of type int64"));
  }
}

TEST_CASE("Select keeps what it names in its order and drops everything else") {
  Batch batch = batch_of_two();
  const auto select = transform(
      "Select", {{"KEYS", list_config({"number", "x"})}, {"META_KEYS", list_config({"nothing", "whole", "x"})}});
  select->apply_batch(batch, 1, 0);
  CHECK(names(batch) == "number x whole ");
  CHECK(batch.tensor("x").equal(at::arange(6, at::kDouble).view({2, 3})));
  CHECK(batch.ids == std::vector<int64_t>{0, 1});
  CHECK(contains(message_of([&] {
                   transform("Select", {{"KEYS", text_config("text")}})->apply_batch(batch, 1, 0);
                 }),
                 "there is no 'text' here, only: number, x, whole"));
}

TEST_CASE("Rename swaps names in one go and keeps the order") {
  Batch batch = batch_of_two();
  transform("Rename", {{"INPUT_KEY", list_config({"x", "whole"})}, {"OUTPUT_KEY", list_config({"whole", "img"})}})
      ->apply_batch(batch, 1, 0);
  CHECK(names(batch) == "whole text img number ");
  CHECK(batch.tensor("whole").sizes() == at::IntArrayRef({2, 3}));
  CHECK(std::get<int64_t>(*batch.find("img")) == 5);
  Sample sample{{"a", int64_t{1}}, {"b", int64_t{2}}};
  gantry::CounterRng rng(0, 0, 0);
  transform("Rename", {{"INPUT_KEY", list_config({"a", "b"})}, {"OUTPUT_KEY", list_config({"b", "a"})}})
      ->apply(sample, rng);
  CHECK(names(sample) == "b a ");
  CHECK(std::get<int64_t>(*sample.find("a")) == 2);
}

TEST_CASE("Rename refuses to replace what has the name already") {
  const auto rename = [](std::vector<std::string> from, std::vector<std::string> to) {
    Batch batch = batch_of_two();
    transform("Rename", {{"INPUT_KEY", list_config(from)}, {"OUTPUT_KEY", list_config(to)}})->apply_batch(batch, 1, 0);
  };
  CHECK(contains(refusal([&] { rename({"x"}, {"whole"}); }), "calls 'x' 'whole', but there is another 'whole'"));
  CHECK(contains(refusal([&] { rename({"x", "whole"}, {"a"}); }), "OUTPUT_KEY has 1 name, INPUT_KEY has 2"));
  CHECK(contains(refusal([&] { rename({"x", "whole"}, {"a", "a"}); }), "OUTPUT_KEY has 'a' twice"));
  CHECK(contains(refusal([&] { rename({"x", "x"}, {"a", "b"}); }), "INPUT_KEY has 'x' twice"));
  CHECK(contains(message_of([&] { rename({"y"}, {"a"}); }), "there is no 'y' here"));
  CHECK(refusal([&] { rename({"x"}, {"x"}); }) == "nothing was thrown");
}
