#include "gantry/world.h"

namespace gantry {

World::~World() = default;

namespace {

class SingleWorld final : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(at::Tensor, Reduce) override {}
  void broadcast(at::Tensor, int) override {}
  void barrier(std::string_view) override {}
  Control control(const Control& mine) override { return mine; }
};

}  // namespace

std::unique_ptr<World> make_single_world() { return std::make_unique<SingleWorld>(); }

}  // namespace gantry
