#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "gantry/metric.h"
#include "unit/messages.h"
#include "unit/plugin_under_test.h"

using gantry::Batch;
using gantry::Metric;
using gantry::Outputs;
using gantry::Scalars;

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

std::unique_ptr<Metric> metric(const std::string& library, const std::string& name, Keys config) {
  return PluginUnderTest(library).build<Metric>(name, map_config(std::move(config)));
}

std::unique_ptr<Metric> confusion(Keys config) {
  return metric("gantry-confusion-matrix", "ConfusionMatrixMetric", std::move(config));
}

std::unique_ptr<Metric> mean(Keys config) { return metric("gantry-mean-metric", "MeanMetric", std::move(config)); }

Batch batch_of(const at::Tensor& label) {
  Batch batch;
  batch.set("label", label);
  batch.ids.assign(static_cast<std::size_t>(label.size(0)), 0);
  batch.weight = static_cast<double>(label.size(0));
  return batch;
}

at::Tensor classes(const std::vector<int64_t>& list) { return at::tensor(list, at::kLong); }

/// Scores of which the largest are at these classes.
at::Tensor scores(const std::vector<int64_t>& found, int64_t count) {
  at::Tensor all = at::zeros({static_cast<int64_t>(found.size()), count});
  for (std::size_t i = 0; i < found.size(); ++i) all[static_cast<int64_t>(i)][found[i]] = 1.5;
  return all;
}

Scalars computed(Metric& metric) {
  Scalars result;
  metric.compute(result);
  return result;
}

double value(const Scalars& scalars, const std::string& name) {
  const double* found = scalars.find(name);
  if (found == nullptr) FAIL("there is no figure called " << name);
  return *found;
}

std::string names(const Scalars& scalars) {
  std::string all;
  for (const auto& [name, value] : scalars.entries()) all += name + " ";
  return all;
}

gantry::Config number(const char* text) { return text_config(text); }

const std::vector<int64_t> kTargets = {0, 0, 0, 0, 1, 1, 2, 2, 2}, kFound = {0, 0, 1, 2, 1, 0, 2, 2, 0};

void check_nine(const Scalars& result) {
  // Targets down, found across: 2 1 1 / 1 1 0 / 1 0 2.
  CHECK(value(result, "precision@0") == doctest::Approx(2.0 / 4));
  CHECK(value(result, "precision@1") == doctest::Approx(1.0 / 2));
  CHECK(value(result, "precision@2") == doctest::Approx(2.0 / 3));
  CHECK(value(result, "recall@0") == doctest::Approx(2.0 / 4));
  CHECK(value(result, "recall@1") == doctest::Approx(1.0 / 2));
  CHECK(value(result, "recall@2") == doctest::Approx(2.0 / 3));
  CHECK(value(result, "f1@1") == doctest::Approx(0.5));
  CHECK(value(result, "f1@2") == doctest::Approx(2.0 / 3));
  CHECK(value(result, "macro_precision") == doctest::Approx((0.5 + 0.5 + 2.0 / 3) / 3));
  CHECK(value(result, "macro_recall") == doctest::Approx((0.5 + 0.5 + 2.0 / 3) / 3));
  CHECK(value(result, "macro_f1") == doctest::Approx((0.5 + 0.5 + 2.0 / 3) / 3));
}

}  // namespace

TEST_CASE("ConfusionMatrixMetric counts over all batches and forgets at reset") {
  const auto matrix = confusion({{"NUM_CLASSES", number("3")}});
  matrix->update(batch_of(classes({1, 1})), {{"logits", scores({2, 0}, 3)}});
  matrix->reset();
  const std::vector<std::pair<std::size_t, std::size_t>> batches = {{0, 4}, {4, 5}, {5, 9}};
  for (const auto& [begin, end] : batches) {
    const auto part = [&, begin = begin, end = end](const std::vector<int64_t>& all) {
      return std::vector<int64_t>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                  all.begin() + static_cast<std::ptrdiff_t>(end));
    };
    matrix->update(batch_of(classes(part(kTargets))), {{"logits", scores(part(kFound), 3)}});
  }
  check_nine(computed(*matrix));
}

TEST_CASE("ConfusionMatrixMetric of processes adds up from their sums") {
  const auto one = confusion({{"NUM_CLASSES", number("3")}});
  const auto other = confusion({{"NUM_CLASSES", number("3")}});
  const at::Tensor targets = classes(kTargets), found = scores(kFound, 3);
  one->update(batch_of(targets.slice(0, 0, 5)), {{"logits", found.slice(0, 0, 5)}});
  other->update(batch_of(targets.slice(0, 5)), {{"logits", found.slice(0, 5)}});
  one->sums()[0].add_(other->sums()[0]);
  check_nine(computed(*one));
}

TEST_CASE("ConfusionMatrixMetric tells precision from recall and calls classes by their names") {
  // a is always found, b and c hardly ever.
  const auto matrix = confusion(
      {{"NUM_CLASSES", number("3")}, {"CLASS_NAMES", list_config({"a", "b", "c"})}, {"PREFIX", text_config("x/")}});
  matrix->update(batch_of(classes({0, 1, 1, 2})), {{"logits", scores({0, 0, 1, 0}, 3)}});
  const Scalars result = computed(*matrix);
  CHECK(names(result) ==
        "x/macro_precision x/macro_recall x/macro_f1 x/precision@a x/recall@a x/f1@a x/precision@b x/recall@b x/f1@b "
        "x/precision@c x/recall@c x/f1@c ");
  CHECK(value(result, "x/precision@a") == doctest::Approx(1.0 / 3));
  CHECK(value(result, "x/recall@a") == 1);
  CHECK(value(result, "x/f1@a") == doctest::Approx(0.5));
  CHECK(value(result, "x/precision@b") == 1);
  CHECK(value(result, "x/recall@b") == 0.5);
  CHECK(value(result, "x/f1@b") == doctest::Approx(2.0 / 3));
  CHECK(value(result, "x/precision@c") == 0);
  CHECK(value(result, "x/recall@c") == 0);
}

TEST_CASE("a class that neither occurs nor is found has no figures and does not pull the means down") {
  const auto matrix = confusion({{"NUM_CLASSES", number("4")}});
  matrix->update(batch_of(classes({0, 1, 1})), {{"logits", scores({0, 1, 3}, 4)}});
  const Scalars result = computed(*matrix);
  CHECK(std::isnan(value(result, "precision@2")));
  CHECK(std::isnan(value(result, "recall@2")));
  CHECK(std::isnan(value(result, "f1@2")));
  CHECK(value(result, "recall@3") == 0);  // found, and never there
  CHECK(value(result, "macro_recall") == doctest::Approx((1 + 0.5 + 0) / 3));
  const Scalars nothing = computed(*confusion({{"NUM_CLASSES", number("2")}, {"PER_CLASS", text_config("false")}}));
  CHECK(names(nothing) == "macro_precision macro_recall macro_f1 ");
  CHECK(std::isnan(value(nothing, "macro_f1")));
}

TEST_CASE("ConfusionMatrixMetric takes found classes and pictures of classes and leaves ignored targets out") {
  const auto matrix = confusion(
      {{"NUM_CLASSES", number("3")}, {"KEYS", list_config({"found", "label"})}, {"IGNORE_INDEX", number("9")}});
  std::vector<int64_t> targets = kTargets, found = kFound;
  targets.insert(targets.end(), {9, 9, 9});
  found.insert(found.end(), {0, 1, 77});
  matrix->update(batch_of(classes(targets).view({3, 2, 2})), {{"found", classes(found).view({3, 2, 2})}});
  check_nine(computed(*matrix));

  const auto pictures = confusion({{"NUM_CLASSES", number("3")}});
  pictures->update(batch_of(classes(kTargets).view({1, 3, 3})),
                   {{"logits", scores(kFound, 3).t().reshape({1, 3, 3, 3})}});
  check_nine(computed(*pictures));

  // A byte cannot hold -100: 156 is a class like any other.
  const auto bytes = confusion({{"NUM_CLASSES", number("200")}, {"KEYS", list_config({"found", "label"})}});
  bytes->update(batch_of(at::full({1}, 156, at::kByte)), {{"found", at::full({1}, 156, at::kByte)}});
  CHECK(value(computed(*bytes), "recall@156") == 1);
}

TEST_CASE("ConfusionMatrixMetric refuses values that are no classes and shapes that do not fit") {
  const auto counted = [](const at::Tensor& label, const at::Tensor& found) {
    return message_of<gantry::ConfigError>([&] {
      const auto matrix = confusion({{"NUM_CLASSES", number("3")}});
      matrix->update(batch_of(label), {{"logits", found}});
      computed(*matrix);
    });
  };
  CHECK(contains(counted(classes({0, 3}), scores({0, 0}, 3)),
                 "NUM_CLASSES is 3, but of 'label' or 'logits' 1 value lies outside of 0 to 2"));
  CHECK(contains(counted(classes({-1, -1}), scores({0, 0}, 3)), "2 values lie outside"));
  CHECK(contains(counted(classes({0, 1}), classes({0, 5})), "1 value lies outside"));
  CHECK(
      contains(counted(classes({0, 1}), scores({0, 0}, 4)), "NUM_CLASSES is 3, but 'logits' has scores for 4 classes"));
  CHECK(contains(counted(classes({0, 1}), scores({0, 0, 0}, 3)), "shape [3, 3]"));
  CHECK(contains(counted(at::zeros({2}), scores({0, 0}, 3)), "'label' as targets, whose values are no integers"));
  const auto built = [](Keys keys) {
    keys.emplace_back("NUM_CLASSES", number("3"));
    return message_of<gantry::ConfigError>([&] { confusion(std::move(keys)); });
  };
  CHECK(contains(built({{"KEYS", list_config({"logits"})}}), "names 1 tensor; it should name two"));
  CHECK(contains(built({{"CLASS_NAMES", list_config({"a", "b"})}}), "CLASS_NAMES has 2 names, NUM_CLASSES is 3"));
}

TEST_CASE("MeanMetric counts each sample once and a number of a batch by the batch's weight") {
  const auto means = mean({{"KEYS", list_config({"loss", "each", "wide", "plain", "whole"})}});
  means->update(batch_of(at::zeros({1})), {{"loss", at::full({}, 100.0)},
                                           {"each", at::full({1}, 100.0)},
                                           {"wide", at::zeros({1, 2})},
                                           {"plain", 100.0},
                                           {"whole", int64_t{100}}});
  means->reset();
  means->update(batch_of(at::zeros({3})), {{"loss", at::full({}, 2.0)},
                                           {"each", at::tensor({1.0, 2.0, 6.0})},
                                           {"wide", at::tensor({1.0, 3.0, 2.0, 2.0, 0.0, 2.0}).view({3, 2})},
                                           {"plain", 4.0},
                                           {"whole", int64_t{1}}});
  means->update(batch_of(at::zeros({1})), {{"loss", at::full({}, 6.0)},
                                           {"each", at::tensor({3.0})},
                                           {"wide", at::tensor({7.0, 1.0}).view({1, 2})},
                                           {"plain", 8.0},
                                           {"whole", int64_t{5}}});
  const Scalars result = computed(*means);
  CHECK(value(result, "mean_loss") == doctest::Approx((3 * 2.0 + 6) / 4));
  CHECK(value(result, "mean_each") == doctest::Approx(12.0 / 4));
  CHECK(value(result, "mean_wide") == doctest::Approx((2 + 2 + 1 + 4) / 4.0));
  CHECK(value(result, "mean_plain") == doctest::Approx((3 * 4.0 + 8) / 4));
  CHECK(value(result, "mean_whole") == doctest::Approx((3 * 1.0 + 5) / 4));
}

TEST_CASE("MeanMetric takes the weight that the model says and leaves a batch of none out") {
  const auto means = mean({{"KEYS", list_config({"loss"})}, {"PREFIX", text_config("")}});
  means->update(batch_of(at::zeros({4})), {{"loss", at::full({}, 1.0)}, {"weight", 30.0}});
  means->update(batch_of(at::zeros({4})), {{"loss", at::full({}, 2.0)}, {"weight", int64_t{10}}});
  means->update(batch_of(at::zeros({0})), {{"loss", at::full({}, std::nan(""))}});
  const Scalars result = computed(*means);
  CHECK(names(result) == "loss ");
  CHECK(value(result, "loss") == doctest::Approx((30 * 1.0 + 10 * 2.0) / 40));
  CHECK(std::isnan(value(computed(*mean({{"KEYS", list_config({"loss"})}})), "mean_loss")));
}

TEST_CASE("MeanMetric of processes adds up from their sums") {
  const auto one = mean({{"KEYS", list_config({"a", "b"})}}), other = mean({{"KEYS", list_config({"a", "b"})}});
  one->update(batch_of(at::zeros({3})), {{"a", at::full({}, 2.0)}, {"b", at::tensor({1.0, 2.0, 3.0})}});
  other->update(batch_of(at::zeros({1})), {{"a", at::full({}, 6.0)}, {"b", at::tensor({10.0})}});
  const std::vector<at::Tensor> sums = one->sums(), others = other->sums();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add_(others[i]);
  CHECK(value(computed(*one), "mean_a") == doctest::Approx(3));
  CHECK(value(computed(*one), "mean_b") == doctest::Approx(4));
}

TEST_CASE("a dotted key names an element of a list and exact names come first") {
  const auto accuracy = [](const char* key, const Outputs& outputs) {
    const auto all = metric("gantry-accuracy", "AccuracyMetric",
                            {{"KEYS", list_config({key, "label"})}, {"PREFIX", text_config("p/")}});
    all->update(batch_of(classes({0, 1})), outputs);
    return value(computed(*all), "p/acc@1");
  };
  const std::vector<at::Tensor> heads = {scores({0, 1}, 2), scores({1, 1}, 2), scores({1, 0}, 2)};
  CHECK(accuracy("logits.0", {{"logits", heads}}) == 1);
  CHECK(accuracy("logits.1", {{"logits", heads}}) == 0.5);
  CHECK(accuracy("logits.2", {{"logits", heads}}) == 0);
  CHECK(accuracy("logits.2", {{"logits", heads}, {"logits.2", heads[0]}}) == 1);
  CHECK(accuracy("a.b.1", {{"a.b", heads}}) == 0.5);
  const auto message = [&](const char* key) { return message_of([&] { accuracy(key, {{"logits", heads}}); }); };
  CHECK(
      contains(message("logits.3"), "'logits.3' asks for number 3, counted from 0, of 'logits', which is a list of 3"));
  for (const char* key : {"logits.x", "logits.", "logits.-1", "logits.1x", "nothing.1", "."}) {
    CAPTURE(key);
    CHECK(contains(message(key), std::string("neither the model's outputs nor the batch have '") + key + "'"));
  }
}
