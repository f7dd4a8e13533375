#include "gantry/capability.h"

// Key functions: every capability's type information lives here, once, whatever plugins are loaded.

namespace gantry {

GradientHook::~GradientHook() = default;
void GradientHook::before_step(Solver&) {}
void GradientHook::after_step(Solver&) {}

EvalObserver::~EvalObserver() = default;
Stateful::~Stateful() = default;
int Stateful::state_version() const { return 1; }
ResumeObserver::~ResumeObserver() = default;
ExceptionObserver::~ExceptionObserver() = default;
CheckpointObserver::~CheckpointObserver() = default;
LearningRateHook::~LearningRateHook() = default;
bool LearningRateHook::fractional_epochs() const { return false; }
EvaluationWeights::~EvaluationWeights() = default;
Recorder::~Recorder() = default;

}  // namespace gantry
