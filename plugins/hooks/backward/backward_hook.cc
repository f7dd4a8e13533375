#include <c10/core/CachingDeviceAllocator.h>
#include <gantry/gantry.h>
#include <gantry/step_engine.h>

#include <memory>
#include <optional>

#include "profile.h"

namespace {

/// Configures the solver's StepEngine and triggers it after each training iteration.
class BackwardHook final : public gantry::Hook {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(0);
    p.triggers_backward();
    p.add<double>("GRADIENT_CLIP", -1)
        .help("Largest L2 norm of all gradients together; larger ones are scaled down to it. <= 0: no clipping.");
    p.optional<int64_t>("ACCUMULATE_STEP")
        .unit("iterations")
        .at_least(1)
        .help(
            "Batches whose gradients make one optimizer step: like one batch of that many times the size. Default: "
            "SOLVER.ACCU_STEP, or 1.");
    p.add<int64_t>("EMPTY_CACHE_STEP", -1)
        .unit("iterations")
        .no_effect_on_result()
        .help("Gives unused GPU memory back every so many iterations. <= 0: never.");
    p.add<bool>("DO_PROFILE", false)
        .no_effect_on_result()
        .help("Whether to record some iterations, as a trace for chrome://tracing or Perfetto.");
    p.optional<std::string>("PROFILE_DIR")
        .not_empty()
        .no_effect_on_result()
        .help("Where trace-<iterations done>.json goes. Default: WORK_DIR/profile.");
    const auto iterations = [&p](const char* name, int64_t count, int64_t least, const char* help) {
      p.add<int64_t>(name, count)
          .unit("iterations")
          .at_least(static_cast<double>(least))
          .no_effect_on_result()
          .help(help);
    };
    iterations("PROFILE_WAIT", 1, 0, "Iterations of a profile's cycle that are left alone.");
    iterations("PROFILE_WARMUP", 1, 0, "Those after them, for which the profiler gets ready.");
    iterations("PROFILE_ACTIVE", 3, 1, "Those after them, which are recorded.");
    p.add<int64_t>("REPEAT", 1)
        .at_least(0)
        .no_effect_on_result()
        .help("Cycles, each with a file of its own. 0: as long as training runs.");
  }

  BackwardHook(const gantry::Config& config, gantry::Context& context)
      : clip_(config.get<double>("GRADIENT_CLIP")),
        empty_cache_(context.device().is_cuda() ? config.get<int64_t>("EMPTY_CACHE_STEP") : -1),
        device_(context.device().type()) {
    if (config.has("ACCUMULATE_STEP")) accumulate_ = config.get<int64_t>("ACCUMULATE_STEP");
    if (!config.get<bool>("DO_PROFILE")) return;
    Profile::Options options;
    options.folder =
        config.has("PROFILE_DIR") ? config.get<std::string>("PROFILE_DIR") : context.work_dir() + "/profile";
    options.wait = config.get<int64_t>("PROFILE_WAIT");
    options.warmup = config.get<int64_t>("PROFILE_WARMUP");
    options.active = config.get<int64_t>("PROFILE_ACTIVE");
    options.repeat = config.get<int64_t>("REPEAT");
    options.cuda = context.device().is_cuda();
    profile_ = std::make_unique<Profile>(std::move(options), context.logger());
  }

  void before_solve(gantry::Solver& solver) override {
    if (solver.engine() == nullptr) return;  // no optimizer: there is nothing to train
    solver.engine()->set_gradient_clip(clip_);
    if (accumulate_.has_value()) solver.engine()->set_accumulate_step(*accumulate_);
  }

  void before_iter(gantry::Solver& solver) override {
    if (profile_ != nullptr && solver.mode() == gantry::Mode::train) profile_->before_iteration(solver.total_iter());
  }

  void after_iter(gantry::Solver& solver) override {
    if (solver.mode() != gantry::Mode::train || solver.engine() == nullptr) return;
    solver.engine()->backward();
    if (empty_cache_ > 0 && (solver.total_iter() + 1) % empty_cache_ == 0)
      c10::getDeviceAllocator(device_)->emptyCache();
    if (profile_ != nullptr) profile_->after_iteration(solver.total_iter());
  }

  void after_solve(gantry::Solver&) override {
    if (profile_ != nullptr) profile_->finish();
  }

 private:
  double clip_;
  std::optional<int64_t> accumulate_;
  int64_t empty_cache_;
  c10::DeviceType device_;
  std::unique_ptr<Profile> profile_;  // null: none was asked for
};

}  // namespace

GANTRY_PLUGIN("gantry-backward", GANTRY_VERSION);
GANTRY_HOOK(BackwardHook, "BackwardHook", "Backward pass, gradient accumulation, clipping and the optimizer step.");
