#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

#include "gantry/export.h"

namespace gantry {

/// The processes of this run. Collective calls are made by all ranks in the same order, on the main thread.
/// With one process they return at once.
class GANTRY_API World {
 public:
  enum class Reduce { sum, min, max };

  virtual ~World();
  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool is_main() const { return rank() == 0; }

  virtual void all_reduce(at::Tensor tensor, Reduce op) = 0;  ///< in place
  virtual void broadcast(at::Tensor tensor, int root) = 0;    ///< in place
  /// `label` says in a time-out's message where a rank is missing.
  virtual void barrier(std::string_view label) = 0;

  /// What every rank must decide alike. `control` combines each rank's wishes (highest value wins) and
  /// returns the decision; it may lag one iteration behind, equally on all ranks.
  struct Control {
    int stop = 0;  ///< 0 go on, 1 finish, 2 pause
    int save = 0;
    int failed = 0;
  };
  virtual Control control(const Control& mine) = 0;
};

GANTRY_API std::unique_ptr<World> make_single_world();

}  // namespace gantry
