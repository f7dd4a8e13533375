#pragma once

/// All that a hook needs, and light to compile: Tensor with its methods (`t.mul(2)`), none of LibTorch's
/// operators, functions or modules. For those include gantry/torch.h.

#include "gantry/batch.h"
#include "gantry/capability.h"
#include "gantry/config.h"
#include "gantry/context.h"
#include "gantry/error.h"
#include "gantry/hook.h"
#include "gantry/log.h"
#include "gantry/parameters.h"
#include "gantry/plugin.h"
#include "gantry/solver.h"
#include "gantry/state.h"
#include "gantry/text.h"
