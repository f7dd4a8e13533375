#include "gantry/hook.h"

namespace gantry {

void Hook::declare_common(Parameters& parameters) { parameters.priority(100); }

Hook::Hook() = default;
Hook::~Hook() = default;
void Hook::before_solve(Solver&) {}
void Hook::before_epoch(Solver&) {}
void Hook::before_all_iter(Solver&) {}
void Hook::before_iter(Solver&) {}
void Hook::after_iter(Solver&) {}
void Hook::after_all_iter(Solver&) {}
void Hook::after_epoch(Solver&) {}
void Hook::after_solve(Solver&) {}

}  // namespace gantry
