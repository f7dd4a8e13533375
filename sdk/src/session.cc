#include "gantry/session.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "config_change.h"
#include "context_impl.h"
#include "file_bytes.h"
#include "gantry/text.h"
#include "resume_choice.h"
#include "run_facts.h"
#include "run_mode.h"
#include "run_time_limit.h"
#include "solver_impl.h"
#include "work_dir.h"

namespace gantry {

namespace {

namespace fs = std::filesystem;

/// ENV.DEVICE, resolved: auto, cpu, cuda, cuda:N.
c10::Device resolve_device(const Config& env) {
  const std::string text = env.get<std::string>("DEVICE");
  const int gpus = at::hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (text == "cpu" || (text == "auto" && gpus == 0)) return c10::Device(c10::DeviceType::CPU);
  if (text == "auto" || text == "cuda") {
    if (gpus == 0)
      throw env.error("DEVICE",
                      "DEVICE is cuda, but LibTorch finds no GPU here; use cpu, or auto to take what there is");
    return c10::Device(c10::DeviceType::CUDA, 0);
  }
  if (text.rfind("cuda:", 0) == 0) {
    int index = -1;
    const char* end = text.data() + text.size();
    const auto [at, problem] = std::from_chars(text.data() + 5, end, index);
    if (problem == std::errc() && at == end && index >= 0) {
      if (index >= gpus)
        throw env.error("DEVICE", cat("DEVICE is ", text, ", but LibTorch finds ", gpus, " GPUs here"));
      return c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index));
    }
  }
  throw env.error("DEVICE", cat("DEVICE must be auto, cpu, cuda or cuda:N, got '", text, "'"));
}

/// "SIGTERM" for TERM, each once.
std::vector<std::string> full_signal_names(const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const std::string& text : given) {
    const std::string name = text.starts_with("SIG") ? text : "SIG" + text;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void apply_env(const Config& env, Services& services) {
  services.seed = static_cast<uint64_t>(env.get<int64_t>("SEED"));
  services.device = resolve_device(env);
  if (const int64_t threads = env.get<int64_t>("NUM_THREADS"); threads > 0)
    at::set_num_threads(static_cast<int>(threads));
  if (env.get<bool>("DETERMINISTIC")) {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setBenchmarkCuDNN(false);
  }
  at::manual_seed(services.seed);
  services.signals = full_signal_names(env.get<std::vector<std::string>>("SIGNALS"));
  if (const Interval limit = env.get<Interval>("MAX_RUN_TIME"); !limit.off())
    services.run_time = RunTimeLimit(process_start(), limit.count);
}

/// A directory that is removed again.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (fs::temp_directory_path() / "gantry-dry-run-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) throw Error(cat("cannot make a temporary directory ", path));
    path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool resumes_automatically(const Config& solver) {
  return solver.has("RESUME_FROM") && solver.get<std::string>("RESUME_FROM") == "auto";
}

/// The configuration with all its defaults, for whoever looks at the results. An evaluation leaves the training's
/// alone.
void write_config_copy(const Config& resolved, const std::string& work_dir) {
  const std::string copy = work_dir + "/config.yaml";
  if (!trains(resolved.get<Config>("SOLVER")) && fs::exists(copy)) return;
  const std::string staged = work_dir + "/.gantry/config.yaml";
  write_file(staged, resolved.yaml());
  std::error_code problem;
  fs::rename(staged, copy, problem);
  if (problem) throw Error(cat("cannot write ", copy, ": ", problem.message()));
}

/// Where the run begins. Of what the earlier runs left, what this one does away with is moved or replaced now, or once
/// the run is restored. `check` refuses a checkpoint to go on from: before anything is touched.
template <class Check>
void prepare_start(WorkDir& work_dir, const Config& resolved, Services& services, const Logger& logger, Check&& check) {
  const Config solver = resolved.get<Config>("SOLVER");
  CheckpointStore store(work_dir.checkpoints());
  std::vector<std::string> newer;
  if (resumes_automatically(solver)) {
    services.resume = newest_checkpoint(store, solver, logger, newer);
    check();
  }
  store.remove_leftovers();
  if (!trains(solver) && resumes_automatically(solver) && !services.resume.has_value())
    throw solver.error("RESUME_FROM", cat("RESUME_FROM is auto, and there is no checkpoint in ", work_dir.checkpoints(),
                                          ": nothing says with which weights to run"));
  if (!trains(solver) || !services.resume.has_value()) {
    if (trains(solver)) work_dir.retire_results(resolved);
    write_config_copy(resolved, work_dir.path());
    return;
  }
  if (!resumes_automatically(solver))
    for (const CheckpointInfo& info : store.list())
      if (info.iteration > services.resume->iteration) newer.push_back(info.name);
  // Not before: a checkpoint that does not fit is refused, and then nothing may have moved.
  services.restored = [&work_dir, &resolved, newer, from = services.resume->name] {
    write_config_copy(resolved, work_dir.path());
    work_dir.retire_checkpoints(newer, from);
    CheckpointStore(work_dir.checkpoints()).remove_broken_links();
  };
}

void print_resume(const Services& services, bool trains, const Logger& logger) {
  if (!services.resume.has_value()) return;
  const CheckpointInfo& from = *services.resume;
  logger.info(cat(trains ? "goes on from " : "with the model of ", from.path, ": epoch ", from.epoch, ", iteration ",
                  from.iteration, ", saved ", from.saved));
  if (!trains)
    return;  // on other data and with other hooks: only the model must be the same, and loading it checks that
  if (const auto lines = fact_differences(from.machine, services.machine); !lines.empty())
    logger.warn(cat("what runs is not what saved the checkpoint, so bits may differ: ", join(lines, "; ")));
}

void print_start(BaseSolver& solver, const Services& services, const Logger& logger) {
  const Solver::Impl& s = solver.solver().impl();
  int64_t parameters = 0;
  for (const NamedParameter& parameter : named_parameters(*s.model)) parameters += parameter.tensor.numel();
  std::string line = cat(s.model_info->name, ", ", parameters, " parameters, on ", services.device.str());
  if (services.device.is_cpu())
    line += cat(" with ", at::get_num_threads(), at::get_num_threads() == 1 ? " thread" : " threads");
  if (const auto& train = s.data[static_cast<int>(Mode::train)]; train != nullptr)
    line += cat("; ", s.fold_batches(), " iterations per epoch, ", s.total_max_iter(), " in all");
  logger.info(cat(line, "; seed ", services.seed, "; writes to ", services.work_dir));
}

void fill(RunReport& report, BaseSolver& solver) {
  const Solver::Impl& s = solver.solver().impl();
  report.epoch = s.epoch;
  report.iteration = s.total_iter[static_cast<int>(Mode::train)];
  report.seconds = std::chrono::duration<double>(s.train_time).count();
  report.checkpoint = s.last_checkpoint;
  report.best = s.best.entries();
  report.samples_per_s = report.seconds > 0 ? static_cast<double>(s.train_samples) / report.seconds : 0;
  for (Mode mode : kModes) {
    const Scalars& values = s.results[static_cast<int>(mode)];
    if (!values.entries().empty()) report.metrics.emplace_back(mode_name(mode), values.entries());
  }
}

void print_summary(const RunReport& report, const Logger& logger) {
  std::string line = cat(report.status == RunStatus::interrupted ? "paused" : "done", " after epoch ", report.epoch,
                         ", iteration ", report.iteration);
  if (report.seconds > 0) {
    char text[96];
    std::snprintf(text, sizeof text, "; trained %.1f s at %.0f samples/s", report.seconds, report.samples_per_s);
    line += text;
  }
  if (!report.checkpoint.empty()) line += cat("; last checkpoint ", report.checkpoint);
  logger.info(line);
  if (report.status == RunStatus::interrupted && !report.checkpoint.empty())
    logger.info("the same command with SOLVER.RESUME_FROM=auto goes on from there");
  for (const auto& [mode, values] : report.metrics) {
    std::string metrics = mode + ":";
    for (const auto& [name, value] : values) metrics += cat(" ", name, " ", short_number(value));
    logger.info(metrics);
  }
}

}  // namespace

RunReport run_session(const Config& resolved, Catalogue& catalogue, std::shared_ptr<LogSink> sink,
                      const RunOptions& options) {
  RunReport report;
  const Logger logger(sink, "");
  std::unique_ptr<TemporaryDirectory> temporary;
  Services services;  // outlives the solver and everything that it built
  services.catalogue = &catalogue;
  services.sink = sink;
  services.world = make_single_world();
  services.dry_run = options.dry_run;
  services.interrupts = options.interrupts;
  std::unique_ptr<WorkDir> work_dir;  // locked until the solver is gone
  std::unique_ptr<BaseSolver> solver;
  try {
    const Config solver_config = for_mode(resolved.get<Config>("SOLVER"));
    apply_env(resolved.get<Config>("ENV"), services);
    if (options.dry_run) {
      temporary = std::make_unique<TemporaryDirectory>();
      services.work_dir = temporary->path();
    } else {
      services.work_dir = fs::absolute(solver_config.get<std::string>("WORK_DIR")).lexically_normal().string();
    }
    report.work_dir = services.work_dir;
    if (solver_config.has("RESUME_FROM") && !resumes_automatically(solver_config))
      services.resume = named_checkpoint(solver_config);
    Context& context = services.make_context("");
    solver = context.build<BaseSolver>(solver_config);
    solver->set_up_pre();
    solver->set_up();
    const Settings settings = result_settings(resolved, catalogue);
    services.machine = machine_facts(services);
    services.settings = facts_of(settings);
    services.config_text = resolved.yaml();
    const auto check = [&] {
      if (services.resume.has_value() && trains(solver_config))
        check_config_changes(solver_config, *services.resume, settings, options.allow_config_change, logger);
    };
    check();
    // Only now, when everything is built: a configuration that cannot be built leaves nothing behind.
    work_dir = std::make_unique<WorkDir>(services.work_dir, solver_config, logger);
    prepare_start(*work_dir, resolved, services, logger, check);
    sink->open_file((fs::path(services.work_dir) / solver_config.get<std::string>("LOG_FILE")).string());
    print_start(*solver, services, logger);
    print_resume(services, trains(solver_config), logger);
    solver->solve();
    fill(report, *solver);
    const bool paused = solver->solver().exit_reason() == ExitReason::paused;
    report.status = paused ? RunStatus::interrupted : RunStatus::done;
    report.exit_code = paused ? 75 : 0;
    print_summary(report, logger);
  } catch (const ConfigError& error) {
    report.exit_code = 2;
    report.error = error.what();
    report.error_file = error.where().file;
    report.error_line = error.where().line;
  } catch (const ComponentError& error) {
    report.exit_code = 1;
    report.error = error.what();
    const ComponentError::Origin& origin = error.origin();
    report.error_file = origin.where.file;
    report.error_line = origin.where.line;
    report.error_plugin = origin.plugin;
    report.error_point = origin.point;
    report.error_iteration = origin.iteration;
  } catch (...) {
    report.exit_code = 1;
    report.error = current_exception_message();
  }
  if (!report.error.empty()) {
    if (solver != nullptr) fill(report, *solver);
    logger.error(report.error);
  }
  return report;
}

}  // namespace gantry
