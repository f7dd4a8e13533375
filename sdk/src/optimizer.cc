#include "gantry/optimizer.h"

namespace gantry {

ParamGroup::ParamGroup(std::string name, double base_lr) : name_(std::move(name)), base_lr_(base_lr), lr_(base_lr) {}

Optimizer::Optimizer(double learning_rate) { groups_.emplace_back("default", learning_rate); }
Optimizer::~Optimizer() = default;

}  // namespace gantry
