#pragma once

#include <string>

namespace gantry {

/// Exchanges two paths at once. Returns 0, or the value of errno.
using ExchangePaths = int (*)(const char* a, const char* b);
int exchange_paths(const char* a, const char* b);

/// Gives the directory `staged` the name `target`, at once, in the same directory. What has had that name stands
/// afterwards under `staged`, or is gone; then true is returned. Where the file system cannot exchange, the earlier
/// one is called `aside` for a moment; put_back() undoes what a crash in that moment leaves. Throws gantry::Error,
/// having changed nothing.
bool publish(const std::string& staged, const std::string& target, const std::string& aside,
             ExchangePaths exchange = exchange_paths);

/// True: `aside` is `target` again. False: `target` is there, `aside` is of no use any more.
bool put_back(const std::string& aside, const std::string& target);

}  // namespace gantry
