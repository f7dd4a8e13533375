#include <gantry/plugin.h>

GANTRY_PLUGIN("gantry-first-order-optimizers", GANTRY_VERSION);
