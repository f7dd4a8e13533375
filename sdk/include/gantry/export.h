#pragma once

/// Everything is built with hidden visibility; what crosses a library boundary carries this mark.
/// A class without it loses its type information at the boundary: `catch` and `dynamic_cast` then fail.
#define GANTRY_API __attribute__((visibility("default")))
