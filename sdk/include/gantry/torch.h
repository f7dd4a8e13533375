#pragma once

/// Everything: for models, losses, solvers and whoever needs LibTorch itself. Costs seconds per source file;
/// gantry_add_plugin(... PRECOMPILE) precompiles it.

#include <torch/torch.h>

#include "gantry/base_solver.h"
#include "gantry/dataset.h"
#include "gantry/gantry.h"
#include "gantry/loader.h"
#include "gantry/lr_scheduler.h"
#include "gantry/metric.h"
#include "gantry/model.h"
#include "gantry/optimizer.h"
#include "gantry/random.h"
#include "gantry/sampler.h"
#include "gantry/step_engine.h"
#include "gantry/transform.h"
#include "gantry/world.h"
