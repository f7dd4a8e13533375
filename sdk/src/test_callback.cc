#include "gantry/test_callback.h"

#include <utility>

#include "gantry/step_engine.h"
#include "gantry/text.h"

namespace gantry {

struct BaseInterruptedVsContinuousCallback::Impl {
  std::string folder, label, recorder;
  double tolerance;
  bool keep_whole;
  std::shared_ptr<int> instances;  ///< of this name, counted as the solver counts them
  std::unique_ptr<RecordingWriter> writer;
  bool begun = false;
  int64_t next_event = 0;

  std::string base() const { return cat(folder, "/", label); }
  void make_writer() { writer = std::make_unique<RecordingWriter>(base(), recorder, tolerance, keep_whole); }

  /// An evaluation of its own leaves what the training recorded alone.
  void begin(const Solver& solver) {
    if (std::exchange(begun, true) || solver.total_max_iter() > 0) return;
    folder += "/evaluation";
    make_writer();
  }
};

void BaseInterruptedVsContinuousCallback::declare(Parameters& p) {
  p.neutral();
  p.priority(-100);
  p.add<double>("TOLERANCE", 0.0)
      .at_least(0)
      .no_effect_on_result()
      .help(
          "0: values are the same when their bits are. Otherwise floating-point values may differ by so much times the "
          "largest magnitude in the tensor; whole values are kept then.");
  p.add<std::string>("VALUES", "digests")
      .choices({"digests", "whole"})
      .no_effect_on_result()
      .help("Whether whole values are kept, beside their digests: a difference then shows numbers.");
}

BaseInterruptedVsContinuousCallback::BaseInterruptedVsContinuousCallback(const Config& config, Context& context)
    : impl_(std::make_unique<Impl>()) {
  impl_->recorder = config.name();
  impl_->instances = context.shared<int>(cat("recording:", config.name()), [] { return std::make_shared<int>(0); });
  const int count = ++*impl_->instances;
  impl_->label = count == 1 ? config.name() : cat(config.name(), "#", count);
  impl_->folder = context.work_dir() + "/recordings";
  impl_->tolerance = config.get<double>("TOLERANCE");
  impl_->keep_whole = impl_->tolerance > 0 || config.get<std::string>("VALUES") == "whole";
  impl_->make_writer();
}

BaseInterruptedVsContinuousCallback::~BaseInterruptedVsContinuousCallback() = default;

std::string BaseInterruptedVsContinuousCallback::recording() const { return impl_->base() + ".jsonl"; }

State BaseInterruptedVsContinuousCallback::state() const {
  // A checkpoint with this number must find the entries before it, whatever ends the process.
  impl_->writer->flush();
  State state;
  state.set_int("event", impl_->next_event);
  return state;
}

void BaseInterruptedVsContinuousCallback::load_state(const State& state, int) {
  impl_->next_event = state.integer("event");
  impl_->writer->cut(impl_->next_event);
}

void BaseInterruptedVsContinuousCallback::after_solve(Solver&) { impl_->writer->flush(); }

namespace {

Recording::Entry entry_of(const Solver& solver, int64_t event) {
  Recording::Entry entry;
  entry.event = event;
  entry.mode = mode_name(solver.mode());
  entry.epoch = solver.epoch();
  entry.iteration = solver.iterations();
  entry.batch = solver.iter();
  return entry;
}

}  // namespace

void BaseInterruptedVsContinuousCallback::record(const Solver& solver, const Fields& values) {
  impl_->begin(solver);
  impl_->writer->add(entry_of(solver, impl_->next_event++), values);
}
void BaseInterruptedVsContinuousCallback::record(const Solver& solver, const State& values) {
  impl_->begin(solver);
  impl_->writer->add(entry_of(solver, impl_->next_event++), values);
}
void BaseInterruptedVsContinuousCallback::record_alone(const Solver& solver, const State& values) {
  impl_->begin(solver);
  impl_->writer->clear();
  // Below every number that a checkpoint has, so that no restored one drops it.
  impl_->writer->add(entry_of(solver, -1), values);
  impl_->writer->flush();
}

void BaseInterruptedVsContinuousCallback::forget() { impl_->writer->clear(); }

bool BaseInterruptedVsContinuousCallback::starts_step(const Solver& solver) {
  return solver.mode() == Mode::train && solver.engine() != nullptr && !solver.engine()->window_open();
}

// --- AbstractStopAndGoCallback ---

void AbstractStopAndGoCallback::declare(Parameters& p) {
  BaseInterruptedVsContinuousCallback::declare(p);
  p.add<std::string>("MODE", "STOP")
      .choices({"STOP", "RESUME"})
      .no_effect_on_result()
      .help("STOP: what holds before the run pauses. RESUME: what holds when it goes on.");
}

AbstractStopAndGoCallback::AbstractStopAndGoCallback(const Config& config, Context& context)
    : BaseInterruptedVsContinuousCallback(config, context),
      mode_(config.get<std::string>("MODE") == "STOP" ? StopAndGoMode::stop : StopAndGoMode::resume) {}

AbstractStopAndGoCallback::~AbstractStopAndGoCallback() = default;

// What is there is of an earlier process.
void AbstractStopAndGoCallback::before_solve(Solver&) { forget(); }

void AbstractStopAndGoCallback::before_epoch(Solver& solver) {
  if (mode_ != StopAndGoMode::resume || taken_ || solver.mode() != Mode::train) return;
  taken_ = true;
  record_alone(solver, get_metadata(solver));
}

void AbstractStopAndGoCallback::on_resume(Solver& solver) {
  const Phase phase = solver.phase();
  const bool in_epoch = phase == Phase::iterating || phase == Phase::interim_due || phase == Phase::evaluating_due ||
                        phase == Phase::pass_done;
  if (mode_ != StopAndGoMode::resume || !in_epoch) return;
  taken_ = true;
  record_alone(solver, get_metadata(solver));
}

void AbstractStopAndGoCallback::after_epoch(Solver& solver) {
  if (mode_ == StopAndGoMode::stop && solver.mode() == Mode::eval) record_alone(solver, get_metadata(solver));
}

void AbstractStopAndGoCallback::after_solve(Solver& solver) {
  if (mode_ == StopAndGoMode::stop && solver.exit_reason() == ExitReason::paused)
    record_alone(solver, get_metadata(solver));
  BaseInterruptedVsContinuousCallback::after_solve(solver);
}

}  // namespace gantry
