#pragma once

/// The kinds of component that a configuration can name, each with its ABI number: raised when the
/// interface that plugins implement changes. New abilities come as capability interfaces instead
/// (capability.h), which change no number.

namespace gantry {

class BaseSolver;
class Hook;
class Model;
class Module;
class Loss;
class Dataset;
class Sampler;
class Transform;
class Optimizer;
class LrScheduler;
class Metric;
class FileSystem;
class Command;

#define GANTRY_ABI_SOLVER 2
#define GANTRY_ABI_HOOK 2
#define GANTRY_ABI_MODEL 2
#define GANTRY_ABI_MODULE 1
#define GANTRY_ABI_LOSS 1
#define GANTRY_ABI_DATASET 1
#define GANTRY_ABI_SAMPLER 1
#define GANTRY_ABI_TRANSFORM 1
#define GANTRY_ABI_OPTIMIZER 2
#define GANTRY_ABI_LR_SCHEDULER 1
#define GANTRY_ABI_METRIC 1
#define GANTRY_ABI_FILE_SYSTEM 1
#define GANTRY_ABI_COMMAND 1

/// KindOf<Hook>::name == "hook". Defined for the interface classes alone.
template <class Interface>
struct KindOf;

#define GANTRY_DETAIL_KIND(Interface, text, number) \
  template <>                                       \
  struct KindOf<Interface> {                        \
    static constexpr const char* name = text;       \
    static constexpr int abi = number;              \
  };
GANTRY_DETAIL_KIND(BaseSolver, "solver", GANTRY_ABI_SOLVER)
GANTRY_DETAIL_KIND(Hook, "hook", GANTRY_ABI_HOOK)
GANTRY_DETAIL_KIND(Model, "model", GANTRY_ABI_MODEL)
GANTRY_DETAIL_KIND(Module, "module", GANTRY_ABI_MODULE)
GANTRY_DETAIL_KIND(Loss, "loss", GANTRY_ABI_LOSS)
GANTRY_DETAIL_KIND(Dataset, "dataset", GANTRY_ABI_DATASET)
GANTRY_DETAIL_KIND(Sampler, "sampler", GANTRY_ABI_SAMPLER)
GANTRY_DETAIL_KIND(Transform, "transform", GANTRY_ABI_TRANSFORM)
GANTRY_DETAIL_KIND(Optimizer, "optimizer", GANTRY_ABI_OPTIMIZER)
GANTRY_DETAIL_KIND(LrScheduler, "lr_scheduler", GANTRY_ABI_LR_SCHEDULER)
GANTRY_DETAIL_KIND(Metric, "metric", GANTRY_ABI_METRIC)
GANTRY_DETAIL_KIND(FileSystem, "file_system", GANTRY_ABI_FILE_SYSTEM)
GANTRY_DETAIL_KIND(Command, "command", GANTRY_ABI_COMMAND)
#undef GANTRY_DETAIL_KIND

}  // namespace gantry
