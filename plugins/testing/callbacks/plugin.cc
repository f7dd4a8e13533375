#include <gantry/plugin.h>

GANTRY_PLUGIN("gantry-test-callbacks", GANTRY_VERSION);
