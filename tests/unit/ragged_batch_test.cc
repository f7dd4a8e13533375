#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "gantry/loader.h"
#include "gantry/sampler.h"
#include "gantry/transform.h"
#include "unit/messages.h"

// Samples whose tensors have different shapes: images before they are resized.

using gantry::Batch;
using gantry::Sample;

namespace {

using Tensors = std::vector<at::Tensor>;

const Tensors& list(const Batch& batch, const std::string& key) { return std::get<Tensors>(*batch.find(key)); }

// Cuts to what all have; leaves smaller ones alone.
class CutTo final : public gantry::Transform {
 public:
  explicit CutTo(int64_t size) : size_(size) {}
  void apply(Sample& sample, gantry::CounterRng&) const override {
    const at::Tensor x = sample.tensor("x");
    if (x.size(0) > size_) sample.set("x", x.slice(0, 0, size_));
  }

 private:
  int64_t size_;
};

class Leave final : public gantry::Transform {
 public:
  void apply(Sample&, gantry::CounterRng&) const override {}
};

Batch batch_of(std::vector<Sample> samples) {
  Batch batch = gantry::collate(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) batch.ids.push_back(static_cast<int64_t>(i));
  return batch;
}

Sample x_of(int64_t size) { return {{"x", at::arange(size)}}; }

// Sample i has i + 2 numbers.
class Growing final : public gantry::Dataset {
 public:
  explicit Growing(bool one_missing = false) : one_missing_(one_missing) {}
  int64_t size() const override { return 6; }
  Sample get(int64_t index) const override { return x_of(index + 2); }
  Batch get_batch(std::span<const int64_t> indices) const override {
    Batch batch = gantry::Dataset::get_batch(indices);
    if (one_missing_) std::get<Tensors>(*batch.find("x")).pop_back();
    return batch;
  }

 private:
  bool one_missing_;
};

class InOrder final : public gantry::Sampler {
 public:
  std::vector<int64_t> order(const gantry::SamplerPass& pass) const override {
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < pass.dataset_size; ++i) indices.push_back(i);
    return indices;
  }
};

Batch loaded(std::unique_ptr<gantry::Dataset> dataset, std::unique_ptr<gantry::Transform> transform, int64_t workers) {
  gantry::Loader::Parts parts;
  parts.dataset = std::move(dataset);
  parts.sampler = std::make_unique<InOrder>();
  parts.transforms.push_back(std::move(transform));
  gantry::Loader::Options options;
  options.batch_size = 6;
  options.num_workers = workers;
  gantry::Loader loader(std::move(parts), options);
  loader.begin(1);
  Batch batch;
  loader.next(batch);
  return batch;
}

}  // namespace

TEST_CASE("tensors of different shapes are collated to a list") {
  const Batch batch = gantry::collate({x_of(3), x_of(2), x_of(3)});
  REQUIRE(list(batch, "x").size() == 3);
  CHECK(list(batch, "x")[1].equal(at::arange(2)));
  CHECK(list(batch, "x")[2].equal(at::arange(3)));
}

TEST_CASE("who needs a tensor of images of different sizes is told both and to resize them") {
  const Batch batch = gantry::collate({{{"img", at::zeros({3, 4, 5})}}, {{"img", at::zeros({3, 6, 5})}}});
  const std::string text = message_of([&] { batch.tensor("img"); });
  CHECK(contains(text, "'img' should be a tensor; it is a list of 2 tensors of different shapes"));
  CHECK(contains(text, "float32 [3, 4, 5] in sample 0 and float32 [3, 6, 5] in sample 1"));
  CHECK(contains(text, "Resize"));
}

TEST_CASE("a transform of samples sees the tensors of a list and makes one tensor when they are alike") {
  Batch batch = batch_of({x_of(4), x_of(2), x_of(3)});
  CutTo(3).apply_batch(batch, 1, 0);
  CHECK(list(batch, "x")[0].equal(at::arange(3)));
  CHECK(list(batch, "x")[1].equal(at::arange(2)));
  CutTo(2).apply_batch(batch, 1, 0);
  CHECK(batch.tensor("x").equal(at::arange(2).expand({3, 2})));
}

TEST_CASE("a transform of samples may make their shapes differ") {
  Batch batch = batch_of({x_of(4), x_of(4)});
  class CutFirst final : public gantry::Transform {
    void apply(Sample& sample, gantry::CounterRng& rng) const override {
      if (rng.uniform() < 2) sample.set("x", sample.tensor("x").slice(0, 0, ++calls_));
    }
    mutable int64_t calls_ = 0;
  };
  static_cast<const gantry::Transform&>(CutFirst()).apply_batch(batch, 1, 0);
  CHECK(list(batch, "x")[0].equal(at::arange(1)));
  CHECK(list(batch, "x")[1].equal(at::arange(2)));
}

TEST_CASE("a list that a transform leaves alone stays a list even when its tensors are alike") {
  const auto boxes = [](int64_t i) { return Sample{{"boxes", Tensors{at::full({2, 4}, static_cast<double>(i))}}}; };
  Batch batch = batch_of({boxes(0), boxes(1)});
  Leave().apply_batch(batch, 1, 0);
  REQUIRE(list(batch, "boxes").size() == 2);
  CHECK(list(batch, "boxes")[1].equal(at::full({2, 4}, 1.0)));
}

TEST_CASE("the loader makes a batch of samples of different sizes once a transform has cut them") {
  for (const int64_t workers : {0, 2}) {
    const Batch batch = loaded(std::make_unique<Growing>(), std::make_unique<CutTo>(2), workers);
    CHECK(batch.tensor("x").equal(at::arange(2).expand({6, 2})));
  }
  CHECK(list(loaded(std::make_unique<Growing>(), std::make_unique<Leave>(), 0), "x").size() == 6);
}

TEST_CASE("the loader refuses a list that has not one tensor per sample") {
  const std::string text = message_of([&] { loaded(std::make_unique<Growing>(true), std::make_unique<Leave>(), 0); });
  CHECK(contains(text, "'x' is a list of 5 tensors for 6 samples"));
}
