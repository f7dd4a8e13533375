#include <gantry/base_solver.h>
#include <gantry/plugin.h>

namespace {

/// Epochs of training with evaluations between them, then a test: the flow of BaseSolver as it is.
class TrainValSolver final : public gantry::BaseSolver {
 public:
  using gantry::BaseSolver::BaseSolver;
};

}  // namespace

GANTRY_PLUGIN("gantry-train-val", GANTRY_VERSION);
GANTRY_SOLVER(TrainValSolver, "TrainValSolver", "Trains for MAX_EPOCHS, evaluates at EVAL_INTERVAL, then tests.");
