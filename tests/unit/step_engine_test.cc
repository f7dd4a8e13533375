#include "gantry/step_engine.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "gantry/error.h"
#include "unit/messages.h"

using gantry::Slot;
using gantry::StepEngine;

namespace {

constexpr double kLearningRate = 0.1;

class PlainSgd final : public gantry::Optimizer {
 public:
  PlainSgd()
      : Optimizer(gantry::Config::map({}, {})
                      .with("LEARNING_RATE", gantry::Config::scalar(std::to_string(kLearningRate), {}))
                      .with("PARAM_GROUPS", gantry::Config::list({}, {}))) {}
  std::vector<std::string> state_names() const override { return {}; }
  void step(std::span<Slot> slots, const gantry::StepScope&) override {
    for (Slot& slot : slots)
      if (slot.gradient.defined()) slot.parameter.sub_(slot.gradient.mul(groups()[0].lr()));
  }
};

/// An engine over some parameters that writes down what happens around its steps.
struct Trainer final : StepEngine::Observer {
  explicit Trainer(const std::vector<at::Tensor>& parameters)
      : engine(optimizer, slots_of(parameters), gantry::make_local_sync(), *this) {}

  static std::vector<Slot> slots_of(const std::vector<at::Tensor>& parameters) {
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Slot slot;
      slot.name = "p" + std::to_string(i);
      slot.parameter = parameters[i];
      slots.push_back(std::move(slot));
    }
    return slots;
  }

  void iterate(const at::Tensor& loss, double weight = 1, double nominal = 1, bool last = false) {
    engine.begin_iteration(loss, weight, nominal, last);
    engine.backward();
  }

  void before_step() override {
    events += "before_step ";
    if (on_before_step) on_before_step();
  }
  void update(gantry::Optimizer& which, std::span<Slot> slots, const gantry::StepScope& scope) override {
    events += "update ";
    which.step(slots, scope);
  }
  void after_step() override {
    events += "after_step ";
    if (on_after_step) on_after_step();
  }

  PlainSgd optimizer;
  std::string events;
  std::function<void()> on_before_step, on_after_step;
  StepEngine engine;
};

at::Tensor wave(at::IntArrayRef shape, double phase, at::ScalarType dtype) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return at::arange(n, at::kDouble).mul(0.7).add(phase).sin().view(shape).to(dtype);
}

/// 6 inputs, 5 hidden, 2 outputs; without `hidden` a linear model.
struct Net {
  Net(bool with_hidden, at::ScalarType dtype) : hidden(with_hidden) {
    if (hidden) add(wave({5, 6}, 0.1, dtype));
    add(wave({2, hidden ? 5 : 6}, 0.2, dtype));
    add(wave({2}, 0.3, dtype));
  }
  void add(const at::Tensor& value) { parameters.push_back(value.clone().requires_grad_()); }
  at::Tensor loss(const at::Tensor& x, const at::Tensor& y) const {
    const at::Tensor h = hidden ? at::linear(x, parameters[0]).tanh() : x;
    const std::size_t head = hidden ? 1 : 0;
    return at::mse_loss(at::linear(h, parameters[head], parameters[head + 1]), y);
  }

  bool hidden;
  std::vector<at::Tensor> parameters;
};

/// What PyTorch's own loop does with the batch.
void plain_step(Net& net, const at::Tensor& x, const at::Tensor& y) {
  net.loss(x, y).backward();
  at::NoGradGuard no_grad;
  for (at::Tensor& parameter : net.parameters) {
    parameter.sub_(parameter.grad().mul(kLearningRate));
    parameter.mutable_grad().reset();
  }
}

double largest_difference(const Net& a, const Net& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    largest = std::max(largest, a.parameters[i].detach().sub(b.parameters[i].detach()).abs().max().item().toDouble());
  return largest;
}

bool same_bits(const Net& a, const Net& b) {
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    if (!a.parameters[i].equal(b.parameters[i])) return false;
  return true;
}

at::Tensor parameter(const std::vector<double>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kDouble)).requires_grad_();
}
std::vector<double> values(const at::Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.numel(); ++i) result.push_back(tensor.detach()[i].item().toDouble());
  return result;
}
std::vector<double> near(double a, double b) { return {a, b}; }

/// With the sign bit set, as x86 makes it: a message says "nan" all the same.
at::Tensor nan_loss(const at::Tensor& p) { return p.sum().mul(-std::numeric_limits<double>::quiet_NaN()); }

}  // namespace

TEST_CASE("every update of a window over batches of unequal size is that of one big batch") {
  const std::vector<int64_t> sizes = {7, 3, 5, 7, 1, 6, 7, 2, 7, 4};
  const int64_t window = 4;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    for (const bool hidden : {false, true}) {
      for (const double nominal : {7.0, 2.5}) {
        CAPTURE(dtype == at::kDouble);
        CAPTURE(hidden);
        CAPTURE(nominal);
        Net accumulated(hidden, dtype), big(hidden, dtype);
        Trainer trainer(accumulated.parameters);
        trainer.engine.set_accumulate_step(window);
        const at::Tensor x = wave({49, 6}, 1.0, dtype), y = wave({49, 2}, 2.0, dtype);
        int64_t first = 0, window_first = 0;
        std::vector<double> differences, moves;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          const at::Tensor xs = x.narrow(0, first, sizes[i]), ys = y.narrow(0, first, sizes[i]);
          first += sizes[i];
          trainer.iterate(accumulated.loss(xs, ys), static_cast<double>(sizes[i]), nominal, i + 1 == sizes.size());
          if (!trainer.engine.backward_step()) continue;
          const Net before = [&] {
            Net copy = big;
            for (at::Tensor& p : copy.parameters) p = p.detach().clone();
            return copy;
          }();
          plain_step(big, x.narrow(0, window_first, first - window_first),
                     y.narrow(0, window_first, first - window_first));
          window_first = first;
          differences.push_back(largest_difference(accumulated, big));
          moves.push_back(largest_difference(before, big));
        }
        REQUIRE(first == 49);
        REQUIRE(differences.size() == 3);  // windows of 4, 4 and 2
        CHECK(trainer.engine.steps() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
          CHECK(differences[i] < (dtype == at::kDouble ? 1e-14 : 1e-6));
          CHECK(moves[i] > 1e-3);
        }
      }
    }
  }
}

TEST_CASE("without accumulation every step has the bits of the plain loop and also for a short last batch") {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    Net engine_net(true, dtype), plain(true, dtype);
    Trainer trainer(engine_net.parameters);
    const at::Tensor x = wave({17, 6}, 1.0, dtype), y = wave({17, 2}, 2.0, dtype);
    for (int64_t first = 0; first < 17; first += 7) {
      const int64_t size = std::min<int64_t>(7, 17 - first);
      const at::Tensor xs = x.narrow(0, first, size), ys = y.narrow(0, first, size);
      trainer.iterate(engine_net.loss(xs, ys), static_cast<double>(size), 7, size < 7);
      plain_step(plain, xs, ys);
      CHECK(same_bits(engine_net, plain));
    }
    CHECK(trainer.engine.steps() == 3);
  }
}

TEST_CASE("gradients are clipped by their norm over all parameters and the norm is the one before clipping") {
  const at::Tensor a = parameter({1, 2}), b = parameter({5});
  Trainer trainer({a, b});
  trainer.engine.set_gradient_clip(1);
  const auto loss = [&](double scale) { return a[0].mul(2 * scale).add(a[1].mul(scale)).add(b[0].mul(2 * scale)); };
  double norm = 0, gradient = 0;
  trainer.on_before_step = [&] {
    norm = trainer.engine.gradient_norm().item().toDouble();
    gradient = trainer.engine.slots()[1].gradient[0].item().toDouble();
  };

  trainer.iterate(loss(10));  // gradients 20, 10 and 20: norm 30
  CHECK(norm == doctest::Approx(30).epsilon(1e-12));
  CHECK(gradient == doctest::Approx(20.0 / 30).epsilon(1e-6));  // hooks see what the optimizer will see
  CHECK(a[0].item().toDouble() == doctest::Approx(1 - kLearningRate * 20 / 30).epsilon(1e-6));
  CHECK(a[1].item().toDouble() == doctest::Approx(2 - kLearningRate * 10 / 30).epsilon(1e-6));
  CHECK(b[0].item().toDouble() == doctest::Approx(5 - kLearningRate * 20 / 30).epsilon(1e-6));

  const double before = b[0].item().toDouble();
  trainer.iterate(loss(0.1));  // norm 0.3: left as it is
  CHECK(norm == doctest::Approx(0.3).epsilon(1e-12));
  CHECK(b[0].item().toDouble() == before - kLearningRate * 0.2);
}

TEST_CASE("the norm that clips a window is that of the whole window") {
  const at::Tensor p = parameter({0, 0});
  Trainer trainer({p});
  trainer.engine.set_accumulate_step(2);
  trainer.engine.set_gradient_clip(1);
  double norm = 0;
  trainer.on_before_step = [&] { norm = trainer.engine.gradient_norm().item().toDouble(); };
  trainer.iterate(p[0].mul(6));
  trainer.iterate(p[1].mul(8));  // the mean of both: gradients 3 and 4
  CHECK(norm == doctest::Approx(5).epsilon(1e-12));
  CHECK(p[0].item().toDouble() == doctest::Approx(-kLearningRate * 3 / 5).epsilon(1e-6));
  CHECK(p[1].item().toDouble() == doctest::Approx(-kLearningRate * 4 / 5).epsilon(1e-6));
}

TEST_CASE("a loss that is not finite is an error before anything is updated") {
  const at::Tensor p = parameter({1, 2});
  Trainer trainer({p});
  trainer.iterate(p.sum());
  const std::vector<double> before = values(p);
  trainer.events.clear();
  const std::string message = message_of([&] { trainer.iterate(nan_loss(p)); });
  CHECK(message.find("training loss is nan after 1 optimizer steps") != std::string::npos);
  CHECK(message.find("NONFINITE: skip") != std::string::npos);
  CHECK(values(p) == before);
  CHECK(trainer.events == "");
  CHECK(trainer.engine.steps() == 1);
  CHECK(message_of([&] { trainer.iterate(p.sum().mul(std::numeric_limits<double>::infinity())); }).find("is inf") !=
        std::string::npos);
}

TEST_CASE("skip leaves out the update of a window with a bad loss and says so") {
  const at::Tensor p = parameter({1, 2});
  Trainer trainer({p});
  trainer.engine.set_nonfinite(StepEngine::NonFinite::skip);
  trainer.engine.set_accumulate_step(2);
  trainer.iterate(p.sum());
  trainer.iterate(nan_loss(p));
  CHECK(trainer.events == "before_step after_step ");
  CHECK(trainer.engine.step_skipped().item().toBool());
  CHECK(trainer.engine.backward_step());
  CHECK(trainer.engine.steps() == 0);
  CHECK(values(p) == near(1, 2));

  // Nothing of the bad window is left in the next one.
  trainer.iterate(p.sum());
  trainer.iterate(p.sum());
  CHECK_FALSE(trainer.engine.step_skipped().item().toBool());
  CHECK(trainer.engine.steps() == 1);
  CHECK(values(p) == near(1 - kLearningRate, 2 - kLearningRate));
}

TEST_CASE("ignore updates with whatever the loss gives") {
  const at::Tensor p = parameter({1, 2});
  Trainer trainer({p});
  trainer.engine.set_nonfinite(StepEngine::NonFinite::ignore);
  trainer.iterate(nan_loss(p));
  CHECK(trainer.engine.steps() == 1);
  CHECK_FALSE(trainer.engine.step_skipped().item().toBool());
  CHECK(std::isnan(values(p)[0]));
}

TEST_CASE("a gradient norm that is not finite counts where clipping computes it") {
  const at::Tensor p = parameter({0, 1});
  const auto loss = [&] { return p[0].sqrt().add(p[1]); };  // finite, but its slope at 0 is not
  {
    Trainer trainer({p});
    trainer.engine.set_gradient_clip(1);
    CHECK(message_of([&] { trainer.iterate(loss()); }).find("gradient norm is inf") != std::string::npos);
    CHECK(values(p) == near(0, 1));
  }
  p.mutable_grad().reset();
  Trainer trainer({p});
  trainer.engine.set_gradient_clip(1);
  trainer.engine.set_nonfinite(StepEngine::NonFinite::skip);
  trainer.iterate(loss());
  CHECK(trainer.engine.step_skipped().item().toBool());
  CHECK(values(p) == near(0, 1));
}

TEST_CASE("hooks stand around the update and see gradients that are gone afterwards") {
  const at::Tensor p = parameter({1, 2});
  Trainer trainer({p});
  double before = 0, after = 0;
  int64_t steps_before = -1, steps_after = -1;
  bool gradient_after = false;
  trainer.on_before_step = [&] {
    before = values(p)[0];
    steps_before = trainer.engine.steps();
    CHECK(values(trainer.engine.slots()[0].gradient) == near(3, 3));
  };
  trainer.on_after_step = [&] {
    after = values(p)[0];
    steps_after = trainer.engine.steps();
    gradient_after = trainer.engine.slots()[0].gradient.defined() && p.grad().defined();
  };
  trainer.iterate(p.sum().mul(3));
  CHECK(trainer.events == "before_step update after_step ");
  CHECK(before == 1);
  CHECK(after == doctest::Approx(1 - kLearningRate * 3));
  CHECK(steps_before == 0);
  CHECK(steps_after == 1);
  CHECK(gradient_after);
  CHECK_FALSE(p.grad().defined());
  CHECK_FALSE(trainer.engine.slots()[0].gradient.defined());
  CHECK_FALSE(trainer.engine.loss().defined());
}

TEST_CASE("a window is open until its last iteration or the end of the epoch") {
  const at::Tensor p = parameter({1});
  Trainer trainer({p});
  trainer.engine.set_accumulate_step(3);
  std::string open, ended;
  for (int i = 0; i < 5; ++i) {
    trainer.iterate(p.sum(), 1, 1, i == 4);
    open += trainer.engine.window_open() ? '1' : '0';
    ended += trainer.engine.backward_step() ? '1' : '0';
  }
  CHECK(open == "11010");
  CHECK(ended == "00101");
  CHECK(trainer.engine.steps() == 2);
  CHECK(trainer.engine.accumulate_step() == 3);
}

TEST_CASE("an iteration without a backward pass and one without a loss do nothing") {
  const at::Tensor p = parameter({1});
  Trainer trainer({p});
  trainer.engine.begin_iteration(p.sum(), 1, 1, true);
  CHECK(trainer.engine.loss().requires_grad());
  CHECK_FALSE(trainer.engine.backward_step());
  CHECK_FALSE(trainer.engine.window_open());
  trainer.iterate(at::Tensor(), 1, 1, true);
  CHECK(trainer.events == "");
  CHECK(trainer.engine.steps() == 0);
}

TEST_CASE("a parameter that took no part is left alone and not counted in the norm") {
  const at::Tensor used = parameter({1, 1}), unused = parameter({5, 6});
  Trainer trainer({unused, used});
  trainer.engine.set_gradient_clip(100);
  trainer.engine.set_accumulate_step(2);
  trainer.on_before_step = [&] {
    CHECK_FALSE(trainer.engine.slots()[0].gradient.defined());
    CHECK(trainer.engine.slots()[1].gradient.defined());
    CHECK(trainer.engine.gradient_norm().item().toDouble() == doctest::Approx(5));
  };
  trainer.iterate(used[0].mul(6));
  trainer.iterate(used[1].mul(8));
  CHECK(trainer.engine.steps() == 1);
  CHECK(values(unused) == near(5, 6));
}

TEST_CASE("a window without any sample is a skipped step") {
  const at::Tensor p = parameter({1, 2});
  Trainer trainer({p});
  trainer.iterate(p.sum(), 0, 4);
  CHECK(trainer.engine.step_skipped().item().toBool());
  CHECK(trainer.engine.steps() == 0);
  CHECK(values(p) == near(1, 2));
}

TEST_CASE("a resumed run goes on counting steps where the saved one stood") {
  const at::Tensor p = parameter({1});
  Trainer trainer({p});
  trainer.engine.set_steps(41);
  trainer.iterate(p.sum());
  CHECK(trainer.engine.steps() == 42);
}
