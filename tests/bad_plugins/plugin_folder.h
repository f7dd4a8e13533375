#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "e2e/run.h"

namespace bad_plugins {

/// The bytes of a plugin built for these tests.
std::string built(const std::string& name);
/// The same file with a text replaced wherever it stands: as another build would have written it. Same length.
std::string rebuilt(std::string bytes, std::string_view from, std::string_view to);
/// The text replaced in the notes alone, which the code then contradicts.
std::string with_note(std::string bytes, std::string_view from, std::string_view to);
/// The first so many percent.
std::string cut(const std::string& bytes, int percent);

/// A folder to run in, with plugins in `plugins/` that write down when they are loaded.
class PluginFolder {
 public:
  /// Copies bytes to plugins/<name>, with the right to be executed, as a linker leaves it.
  PluginFolder& add(const std::string& name, const std::string& bytes);

  /// Runs the program there; `--plugin-dir plugins` is added.
  e2e::RunResult gantry(std::vector<std::string> arguments, const e2e::RunOptions& options = {}) const;
  /// The same without `--plugin-dir`.
  e2e::RunResult gantry_without(const std::vector<std::string>& arguments, const e2e::RunOptions& options = {}) const;
  /// Trains for two iterations with one more hook, given as an item of TRAIN_HOOKS; empty: none.
  e2e::RunResult run_with(const std::string& hook, const e2e::RunOptions& options = {});

  /// A run that needs the hook `name` is refused, in the line that names it and before anything is built, with these
  /// parts in the message.
  void check_refused(const std::string& name, const std::vector<std::string>& parts);
  /// `plugins list` exits 0 and the line of this file holds these parts.
  void check_listed(const std::string& file, const std::vector<std::string>& parts) const;
  /// A run that needs nothing of the folder trains as if it were not there.
  void check_unneeded();

  /// The files of every plugin loaded so far, in order, each at every time.
  std::vector<std::string> loaded() const;

  const e2e::TempDir& dir() const { return dir_; }
  std::string path(const std::string& file) const { return dir_.path("plugins/" + file); }

 private:
  e2e::TempDir dir_;
};

/// A configuration that trains for two iterations; `hook` is an item of TRAIN_HOOKS, or empty.
std::string job(const std::string& hook);

}  // namespace bad_plugins
