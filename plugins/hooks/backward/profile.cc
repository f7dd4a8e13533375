#include "profile.h"

#include <ATen/record_function.h>
#include <gantry/error.h>
#include <gantry/text.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

namespace fs = std::filesystem;
namespace profiler = torch::autograd::profiler;
namespace profiling = torch::profiler::impl;

namespace {

profiling::ProfilerConfig config() { return profiling::ProfilerConfig(profiling::ProfilerState::KINETO); }

std::set<profiling::ActivityType> activities(bool cuda) {
  std::set<profiling::ActivityType> types{profiling::ActivityType::CPU};
  if (cuda) types.insert(profiling::ActivityType::CUDA);
  return types;
}

}  // namespace

struct Profile::Recording {
  int64_t recorded = 0;
  std::optional<at::RecordFunction> iteration;  // the one that runs
};

Profile::Profile(Options options, gantry::Logger logger) : options_(std::move(options)), logger_(std::move(logger)) {}

// An exception may have come before finish(): the profiler is never left running.
Profile::~Profile() {
  if (recording_ == nullptr) return;
  recording_.reset();
  try {
    profiler::disableProfiler();
  } catch (...) {  // there is nobody left to tell
  }
}

void Profile::before_iteration(int64_t total_iter) {
  const int64_t cycle = options_.wait + options_.warmup + options_.active;
  if (recording_ == nullptr) {
    if (options_.repeat > 0 && iteration_ / cycle >= options_.repeat) return;
    const int64_t at = iteration_ % cycle;
    if (at >= options_.wait && !prepared_) {
      profiler::prepareProfiler(config(), activities(options_.cuda));
      prepared_ = true;
    }
    if (at < options_.wait + options_.warmup) return;
    profiler::enableProfiler(config(), activities(options_.cuda),
                             {at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE});
    recording_ = std::make_unique<Recording>();
  }
  recording_->iteration.emplace(at::RecordScope::USER_SCOPE);
  recording_->iteration->before(gantry::cat("ProfilerStep#", total_iter));
}

void Profile::after_iteration(int64_t total_iter) {
  ++iteration_;
  iterations_ = total_iter + 1;
  if (recording_ == nullptr) return;
  recording_->iteration.reset();
  if (++recording_->recorded == options_.active) write();
}

void Profile::finish() {
  if (recording_ != nullptr) write();
}

void Profile::write() {
  recording_.reset();
  prepared_ = false;
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  const fs::path target = fs::path(options_.folder) / gantry::cat("trace-", iterations_, ".json");
  const fs::path staged = fs::path(options_.folder) / gantry::cat(".tmp-", ::getpid(), "-trace.json");
  std::error_code problem;
  fs::create_directories(options_.folder, problem);
  if (problem) throw gantry::Error(gantry::cat("cannot make the folder ", options_.folder, ": ", problem.message()));
  result->save(staged.string());
  fs::rename(staged, target, problem);
  if (problem) throw gantry::Error(gantry::cat("cannot write the profile ", target.string(), ": ", problem.message()));
  logger_.info(gantry::cat("wrote the profile ", target.string()));
}
