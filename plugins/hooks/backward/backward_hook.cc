#include <c10/core/CachingDeviceAllocator.h>
#include <gantry/gantry.h>
#include <gantry/step_engine.h>

namespace {

/// Configures the solver's StepEngine and triggers it after each training iteration.
class BackwardHook final : public gantry::Hook {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(0);
    p.triggers_backward();
    p.add<double>("GRADIENT_CLIP", -1)
        .help("Largest L2 norm of all gradients together; larger ones are scaled down to it. <= 0: no clipping.");
    p.add<int64_t>("ACCUMULATE_STEP", 1)
        .unit("iterations")
        .at_least(1)
        .help("Batches whose gradients make one optimizer step: like one batch of that many times the size.");
    p.add<int64_t>("EMPTY_CACHE_STEP", -1)
        .unit("iterations")
        .no_effect_on_result()
        .help("Gives unused GPU memory back every so many iterations. <= 0: never.");
  }

  BackwardHook(const gantry::Config& config, gantry::Context& context)
      : clip_(config.get<double>("GRADIENT_CLIP")),
        accumulate_(config.get<int64_t>("ACCUMULATE_STEP")),
        empty_cache_(context.device().is_cuda() ? config.get<int64_t>("EMPTY_CACHE_STEP") : -1),
        device_(context.device().type()) {}

  void before_solve(gantry::Solver& solver) override {
    if (solver.engine() == nullptr) return;  // no optimizer: there is nothing to train
    solver.engine()->set_gradient_clip(clip_);
    solver.engine()->set_accumulate_step(accumulate_);
  }

  void after_iter(gantry::Solver& solver) override {
    if (solver.mode() != gantry::Mode::train || solver.engine() == nullptr) return;
    solver.engine()->backward();
    if (empty_cache_ > 0 && (solver.total_iter() + 1) % empty_cache_ == 0)
      c10::getDeviceAllocator(device_)->emptyCache();
  }

 private:
  double clip_;
  int64_t accumulate_, empty_cache_;
  c10::DeviceType device_;
};

}  // namespace

GANTRY_PLUGIN("gantry-backward", GANTRY_VERSION);
GANTRY_HOOK(BackwardHook, "BackwardHook", "Backward pass, gradient accumulation, clipping and the optimizer step.");
