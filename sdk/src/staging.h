#pragma once

#include <string>

/// Files and folders that are written under a temporary name beside the one that they get when they are whole.

namespace gantry {

/// A name that nobody uses, in the folder of `path` and with its ending: writers that look at the ending see the right
/// one.
std::string staged_beside(const std::string& path);

/// The folder that a path lies in: "." for a name alone.
std::string folder_of(const std::string& path);

/// Makes a folder and those on the way to it, where they are missing. Throws gantry::Error.
void make_folders(const std::string& path);

/// Flushes the file `staged` and gives it the name `target`, at once: a file of that name is replaced. Throws
/// gantry::Error, and then `target` is what it was.
void replace_file(const std::string& staged, const std::string& target);

}  // namespace gantry
