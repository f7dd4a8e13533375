#include "gantry/loader.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "gantry/error.h"
#include "gantry/random.h"
#include "unit/messages.h"

using namespace std::chrono_literals;
using gantry::Batch;
using gantry::CounterRng;
using gantry::Loader;

namespace {

// What happens while a dataset makes its batches, seen from the test.
struct Watch {
  std::atomic<int> made = 0;
  std::atomic<int> most_threads = 0;
  std::atomic<int64_t> slow_below = 0;  // samples below this index take `delay`
  std::atomic<int64_t> failing = -1;    // this sample throws
  std::chrono::milliseconds delay{0};
};

class NumberedDataset final : public gantry::Dataset {
 public:
  NumberedDataset(int64_t size, Watch& watch) : size_(size), watch_(watch) {}
  int64_t size() const override { return size_; }
  Batch get_batch(std::span<const int64_t> indices) const override {
    watch_.most_threads = std::max<int>(watch_.most_threads, at::get_num_threads());
    for (const int64_t index : indices) {
      if (index < watch_.slow_below) std::this_thread::sleep_for(watch_.delay);
      if (index == watch_.failing) throw std::runtime_error("the disk is full of holes");
    }
    Batch batch;
    batch.set("x", at::tensor(std::vector<int64_t>(indices.begin(), indices.end())).to(at::kDouble));
    ++watch_.made;
    return batch;
  }
  void begin_epoch(int64_t epoch) override { began = epoch; }
  int64_t began = 0;

 private:
  int64_t size_;
  Watch& watch_;
};

class ShufflingSampler final : public gantry::Sampler {
 public:
  std::vector<int64_t> order(const gantry::SamplerPass& pass) const override {
    std::vector<int64_t> indices(static_cast<std::size_t>(pass.dataset_size));
    std::iota(indices.begin(), indices.end(), 0);
    CounterRng rng(pass.seed, static_cast<uint64_t>(pass.epoch), 0);
    for (std::size_t i = indices.size(); pass.shuffle && i > 1; --i) std::swap(indices[i - 1], indices[rng.below(i)]);
    return indices;
  }
};

class AddNoise final : public gantry::Transform {
 public:
  void apply(gantry::Sample& sample, CounterRng& rng) const override {
    sample.set("x", sample.tensor("x").add(rng.uniform()));
  }
};

class Failing final : public gantry::Transform {
 public:
  void apply(gantry::Sample&, CounterRng&) const override { throw 7; }
};

struct Setup {
  int64_t size = 10, batch_size = 4, workers = 0, limit = 0;
  bool shuffle = false;
  uint64_t seed = 3;
  int noise = 0;
};

Loader make(Watch& watch, const Setup& setup) {
  Loader::Parts parts;
  parts.dataset = std::make_unique<NumberedDataset>(setup.size, watch);
  parts.sampler = std::make_unique<ShufflingSampler>();
  for (int i = 0; i < setup.noise; ++i) parts.transforms.push_back(std::make_unique<AddNoise>());
  parts.dataset_origin.component = "dataset Numbered";
  Loader::Options options;
  options.batch_size = setup.batch_size;
  options.num_workers = setup.workers;
  options.limit_batches = setup.limit;
  options.shuffle = setup.shuffle;
  options.seed = setup.seed;
  return Loader(std::move(parts), options);
}

std::vector<double> numbers(const Batch& batch) {
  const at::Tensor x = batch.tensor("x");
  return {x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel()};
}

// Everything that an epoch's remaining batches hold.
struct Seen {
  std::vector<std::vector<int64_t>> ids;
  std::vector<std::vector<double>> values;
  std::vector<int64_t> positions;
  std::vector<double> weights;
  bool operator==(const Seen&) const = default;
};

Seen drain(Loader& loader) {
  Seen seen;
  Batch batch;
  while (loader.next(batch)) {
    seen.ids.push_back(batch.ids);
    seen.values.push_back(numbers(batch));
    seen.positions.push_back(batch.first_position);
    seen.weights.push_back(batch.weight);
  }
  return seen;
}

Seen epoch(Loader& loader, int64_t number, int64_t first_batch = 0) {
  loader.begin(number, first_batch);
  return drain(loader);
}

std::vector<int64_t> flat(const Seen& seen) {
  std::vector<int64_t> all;
  for (const auto& ids : seen.ids) all.insert(all.end(), ids.begin(), ids.end());
  return all;
}

}  // namespace

TEST_CASE("a loader cuts the order into batches and the last one is short") {
  Watch watch;
  Loader loader = make(watch, {.size = 10, .batch_size = 4});
  CHECK(loader.samples_per_epoch() == 10);
  CHECK(loader.batches_per_epoch() == 3);
  CHECK(loader.batch_size() == 4);
  const Seen seen = epoch(loader, 1);
  CHECK(seen.ids == std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(seen.values == std::vector<std::vector<double>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(seen.positions == std::vector<int64_t>{0, 4, 8});
  CHECK(seen.weights == std::vector<double>{4, 4, 2});
  CHECK(epoch(loader, 3).positions == std::vector<int64_t>{20, 24, 28});
  CHECK(dynamic_cast<NumberedDataset&>(loader.dataset()).began == 3);
}

TEST_CASE("a limit cuts whole batches off the end of an epoch") {
  for (const int64_t workers : {0, 2}) {
    Watch watch;
    Loader loader = make(watch, {.size = 10, .batch_size = 4, .workers = workers, .limit = 2});
    CHECK(loader.batches_per_epoch() == 2);
    CHECK(epoch(loader, 1).ids == std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
    Loader wide = make(watch, {.size = 10, .batch_size = 4, .workers = workers, .limit = 9});
    CHECK(epoch(wide, 1).ids.size() == 3);
  }
}

TEST_CASE("the batches are the same whatever the number of workers") {
  Watch watch;
  Setup setup{.size = 101, .batch_size = 7, .workers = 0, .shuffle = true, .noise = 2};
  Loader plain = make(watch, setup);
  const Seen first = epoch(plain, 1), second = epoch(plain, 2);
  CHECK(first.values != second.values);
  for (const int64_t workers : {1, 3, 8}) {
    setup.workers = workers;
    Loader loader = make(watch, setup);
    CHECK(epoch(loader, 1) == first);
    CHECK(epoch(loader, 2) == second);
  }
}

TEST_CASE("an order depends on seed and epoch alone and holds each sample once") {
  Watch watch;
  const Setup setup{.size = 50, .batch_size = 8, .shuffle = true, .seed = 11};
  Loader a = make(watch, setup), b = make(watch, setup);
  const std::vector<int64_t> first = flat(epoch(a, 1)), second = flat(epoch(a, 2));
  CHECK(first != second);
  CHECK(flat(epoch(b, 2)) == second);
  CHECK(flat(epoch(b, 1)) == first);
  Setup other = setup;
  other.seed = 12;
  Loader c = make(watch, other);
  CHECK(flat(epoch(c, 1)) != first);
  std::vector<int64_t> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(50);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
}

TEST_CASE("an epoch can begin at any batch and goes on as the whole one") {
  for (const int64_t workers : {0, 2}) {
    Watch watch;
    Loader loader = make(watch, {.size = 30, .batch_size = 4, .workers = workers, .shuffle = true, .noise = 1});
    const Seen whole = epoch(loader, 2);
    for (const int64_t from : {0, 3, 7, 8}) {
      const Seen rest = epoch(loader, 2, from);
      REQUIRE(rest.ids.size() == whole.ids.size() - static_cast<std::size_t>(from));
      for (std::size_t i = 0; i < rest.ids.size(); ++i) {
        CHECK(rest.values[i] == whole.values[i + static_cast<std::size_t>(from)]);
        CHECK(rest.positions[i] == whole.positions[i + static_cast<std::size_t>(from)]);
      }
    }
    CHECK_THROWS_AS(loader.begin(2, 9), std::logic_error);
    CHECK_THROWS_AS(loader.begin(0), std::logic_error);
  }
}

TEST_CASE("each transform of a list draws numbers of its own") {
  Watch watch;
  Loader once = make(watch, {.size = 4, .batch_size = 4, .noise = 1});
  Loader twice = make(watch, {.size = 4, .batch_size = 4, .noise = 2});
  const std::vector<double> one = epoch(once, 1).values[0], two = epoch(twice, 1).values[0];
  for (std::size_t i = 0; i < 4; ++i) {
    const double first = one[i] - static_cast<double>(i), second = two[i] - one[i];
    CHECK(first != doctest::Approx(second));
    CounterRng rng(3, i, 1);
    CHECK(second == doctest::Approx(rng.uniform()));
  }
}

TEST_CASE("batches come in order even when an earlier one takes longest") {
  Watch watch;
  watch.slow_below = 1;
  watch.delay = 100ms;
  Loader loader = make(watch, {.size = 24, .batch_size = 2, .workers = 4});
  std::vector<int64_t> all(24);
  std::iota(all.begin(), all.end(), 0);
  CHECK(flat(epoch(loader, 1)) == all);
}

TEST_CASE("workers look ahead by a bounded number of batches") {
  for (const int64_t workers : {1, 3}) {
    Watch watch;
    Loader loader = make(watch, {.size = 1000, .batch_size = 1, .workers = workers});
    const int ahead = static_cast<int>(std::max<int64_t>(2, 2 * workers));
    loader.begin(1);
    Batch batch;
    for (int taken = 0; taken < 3; ++taken) {
      for (int i = 0; i < 500 && watch.made < taken + ahead; ++i) std::this_thread::sleep_for(2ms);
      std::this_thread::sleep_for(20ms);
      CHECK(watch.made == taken + ahead);
      REQUIRE(loader.next(batch));
    }
  }
}

TEST_CASE("what a dataset throws arrives at its own batch and names component and samples") {
  for (const int64_t workers : {0, 1, 3}) {
    Watch watch;
    watch.failing = 5;
    Loader loader = make(watch, {.size = 10, .batch_size = 2, .workers = workers});
    loader.begin(1);
    Batch batch;
    CHECK(loader.next(batch));
    CHECK(loader.next(batch));
    CHECK(batch.ids == std::vector<int64_t>{2, 3});
    try {
      loader.next(batch);
      FAIL("nothing was thrown");
    } catch (const gantry::ComponentError& error) {
      CHECK(error.origin().component == "dataset Numbered");
      CHECK(error.origin().point == "get_batch");
      CHECK(error.cause() == "samples 4, 5: the disk is full of holes");
    }
    CHECK_THROWS_AS(loader.next(batch), std::logic_error);
    watch.failing = -1;
    CHECK(epoch(loader, 1).ids.size() == 5);
  }
}

TEST_CASE("what a transform throws names its origin whatever the type of the exception") {
  for (const int64_t workers : {0, 2}) {
    Watch watch;
    Loader::Parts parts;
    parts.dataset = std::make_unique<NumberedDataset>(100, watch);
    parts.sampler = std::make_unique<ShufflingSampler>();
    parts.transforms.push_back(std::make_unique<AddNoise>());
    parts.transforms.push_back(std::make_unique<Failing>());
    parts.transform_origins.resize(2);
    parts.transform_origins[1].component = "transform Failing";
    parts.transform_origins[1].plugin = "acme 1.0";
    Loader::Options options;
    options.batch_size = 20;
    options.num_workers = workers;
    Loader loader(std::move(parts), options);
    loader.begin(1);
    Batch batch;
    try {
      loader.next(batch);
      FAIL("nothing was thrown");
    } catch (const gantry::ComponentError& error) {
      CHECK(error.origin().component == "transform Failing");
      CHECK(error.origin().plugin == "acme 1.0");
      CHECK(error.origin().point == "apply_batch");
      CHECK(contains(error.cause(), "samples 0, 1, 2, 3, 4, 5, 6, 7, ... (20 in all)"));
    }
  }
}

TEST_CASE("a loader stops in the middle of an epoch and begins again") {
  for (const int64_t workers : {0, 1, 3}) {
    Watch watch;
    Loader loader = make(watch, {.size = 40, .batch_size = 2, .workers = workers, .shuffle = true});
    const Seen whole = epoch(loader, 5);
    Batch batch;
    for (int i = 0; i < 20; ++i) {
      loader.begin(1);  // in the middle of the one before, from the second time on
      for (int taken = 0; taken < i % 4; ++taken) REQUIRE(loader.next(batch));
      if (i % 2 == 0) loader.stop();
    }
    CHECK(epoch(loader, 5) == whole);
  }
}

TEST_CASE("after stop no dataset runs until the next begin") {
  Watch watch;
  watch.slow_below = 1 << 20;
  watch.delay = 3ms;
  Loader loader = make(watch, {.size = 1000, .batch_size = 1, .workers = 2});
  loader.begin(1);
  Batch batch;
  REQUIRE(loader.next(batch));
  loader.stop();
  const int made = watch.made;
  CHECK(made < 10);
  std::this_thread::sleep_for(30ms);
  CHECK(watch.made == made);
  loader.stop();
}

TEST_CASE("a loader is destroyed with full queues and with a worker in the middle of a batch") {
  Watch watch;
  {
    Loader full = make(watch, {.size = 1000, .batch_size = 1, .workers = 3});
    full.begin(1);
    for (int i = 0; i < 500 && watch.made < 6; ++i) std::this_thread::sleep_for(2ms);
  }
  CHECK(watch.made == 6);
  const auto start = std::chrono::steady_clock::now();
  {
    watch.slow_below = 1 << 20;
    watch.delay = 100ms;
    Loader busy = make(watch, {.size = 1000, .batch_size = 1, .workers = 3});
    busy.begin(1);
    std::this_thread::sleep_for(20ms);
  }
  // Of a thousand batches only those in hand were waited for.
  CHECK(std::chrono::steady_clock::now() - start < 5s);
  CHECK(watch.made <= 6 + 3);
}

TEST_CASE("next without begin is an error and next after the last batch says so again") {
  for (const int64_t workers : {0, 2}) {
    Watch watch;
    Loader loader = make(watch, {.size = 3, .batch_size = 2, .workers = workers});
    Batch batch;
    CHECK_THROWS_AS(loader.next(batch), std::logic_error);
    CHECK(epoch(loader, 1).ids.size() == 2);
    CHECK_FALSE(loader.next(batch));
    CHECK_FALSE(loader.next(batch));
    loader.stop();
    CHECK_THROWS_AS(loader.next(batch), std::logic_error);
  }
}

TEST_CASE("workers compute with one thread each and leave the numbers of all others alone") {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  Watch watch;
  {
    Loader loader = make(watch, {.size = 20, .batch_size = 1, .workers = 4});
    epoch(loader, 1);
    CHECK(watch.most_threads == 1);
    CHECK(at::get_num_threads() == 3);
    int later = 0;
    std::thread([&] { later = at::get_num_threads(); }).join();
    CHECK(later == 3);
    epoch(loader, 2);
    CHECK(watch.most_threads == 1);
  }
  at::set_num_threads(before);
}

namespace {

class BadSampler final : public gantry::Sampler {
 public:
  explicit BadSampler(std::vector<int64_t> order) : order_(std::move(order)) {}
  std::vector<int64_t> order(const gantry::SamplerPass&) const override { return order_; }

 private:
  std::vector<int64_t> order_;
};

class ThreeOfAll final : public gantry::Dataset {
 public:
  int64_t size() const override { return 2; }
  Batch get_batch(std::span<const int64_t>) const override {
    Batch batch;
    batch.set("x", at::zeros({3}));
    return batch;
  }
};

std::string begin_error(std::unique_ptr<gantry::Dataset> dataset, std::unique_ptr<gantry::Sampler> sampler) {
  Loader::Parts parts;
  parts.dataset = std::move(dataset);
  parts.sampler = std::move(sampler);
  Loader::Options options;
  options.batch_size = 2;
  Loader loader(std::move(parts), options);
  try {
    loader.begin(1);
    Batch batch;
    loader.next(batch);
  } catch (const gantry::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("an order of the wrong length or with an index out of range is refused") {
  Watch watch;
  const auto error = [&](std::vector<int64_t> order) {
    return begin_error(std::make_unique<NumberedDataset>(2, watch), std::make_unique<BadSampler>(std::move(order)));
  };
  CHECK(contains(error({0}), "1 indices"));
  CHECK(contains(error({0, 2}), "index 2"));
  CHECK(contains(error({-1, 0}), "index -1"));
  CHECK(error({1, 1}) == "nothing was thrown");
}

TEST_CASE("a batch whose tensors have not one row per sample is refused") {
  const std::string text = begin_error(std::make_unique<ThreeOfAll>(), std::make_unique<ShufflingSampler>());
  CHECK(contains(text, "'x' is a float32 [3] tensor for 2 samples"));
}
