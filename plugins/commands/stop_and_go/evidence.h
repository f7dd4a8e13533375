#pragma once

#include <string>
#include <vector>

#include "comparison.h"
#include "job.h"
#include "runs.h"

namespace stop_and_go {

/// What recorders of the training wrote in two work dirs, each with the other's.
std::vector<Comparison> compare_all_recordings(const std::string& expected_dir, const std::string& actual_dir);

/// What a segment had restored with the checkpoint that it went on from, as the segment before had written it.
/// `scratch`: a path for files of its own.
Comparison compare_restored(const Run& segment, const std::string& scratch);

/// What classes with a MODE noted before a pause, and after it.
std::vector<Comparison> compare_stop_and_resume(const std::vector<Job::Hook>& hooks, const Run& stopped,
                                                const Run& resumed);

/// Every checkpoint that both have, the last one without fail, and what the link best names.
std::vector<Comparison> compare_checkpoints(const std::string& expected_dir, const std::string& actual_dir);

/// What the runs' machines do not agree in: "threads: 1 in the continuous run, 2 in segment 1".
std::vector<std::string> machine_differences(const std::vector<const Run*>& runs);

/// The recording of a hook; nullptr where there is none.
std::optional<gantry::Recording> find_recording(const std::string& work_dir, const std::string& label);

}  // namespace stop_and_go
