#include "harness.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "evidence.h"

namespace stop_and_go {
namespace {

constexpr int kEqual = 0;
constexpr int kDifferent = 1;
constexpr int kNotComparable = 2;
constexpr char kEventOrder[] = "EventOrderCallback";
constexpr char kTrainLoss[] = "TrainLossCallback";
/// Those that have an entry for whatever was trained.
constexpr const char* kOfTraining[] = {"LearningRateCallback",
                                       "GlobalStepStateCallback",
                                       "ConsumedSamplesCallback",
                                       "OptimizerStateCallback",
                                       "TrainInputCallback",
                                       "TrainOutputCallback",
                                       kTrainLoss,
                                       "WeightsCallback",
                                       "GradientCallback",
                                       "RngStateCallback",
                                       "SampleIdCallback",
                                       kEventOrder};
constexpr const char* kOfEvaluation[] = {"ValidInputCallback", "ValidOutputCallback"};

std::string course_text(const Course& course) {
  std::string text = gantry::cat(count_text(course.iterations, "iteration"), ", ", count_text(course.steps, "step"));
  for (const gantry::Mode mode : {gantry::Mode::eval, gantry::Mode::test})
    if (const int64_t count = course.count(mode); count > 0)
      text += gantry::cat(", ", count, mode == gantry::Mode::eval ? " evaluation" : " test", " batch",
                          count == 1 ? "" : "es");
  return text;
}

std::string segment_text(const Run& run) {
  std::string text = run.from.has_value() ? gantry::cat("from ", run.from->name, " ") : "from the start ";
  if (!run.stop.has_value()) return text + "to the end";
  text += gantry::cat("to a stop ", run.stop->place.sentence());
  if (run.ending.signal == 0 && run.stop->place.mode == gantry::Mode::train &&
      run.stop->iteration != run.stop->place.number)
    text += gantry::cat(" (its window ends after ", run.stop->iteration, ")");
  return gantry::cat(text, ": ", run.cause);
}

}  // namespace

Harness::Harness(const Arguments& arguments, const Job& job, WorkTree& tree, Children& children, gantry::Logger logger,
                 Report& report)
    : arguments_(arguments),
      job_(job),
      tree_(tree),
      children_(children),
      runs_(job, arguments, tree, children, std::move(logger)),
      report_(report) {}

void Harness::run_continuous() {
  report_.runs.push_back(runs_.continuous("continuous"));
  const Run& run = report_.runs.front();
  const std::optional<gantry::Recording> events = find_recording(run.work_dir, kEventOrder);
  if (events.has_value()) course_ = read_course(*events, job_.before());
  report_.iterations = course_.iterations;
  report_.steps = course_.steps;
  std::cout << run_text(run, course_text(course_)) << std::flush;
  if (course_.iterations == 0)
    throw Failure(kDifferent, "nothing was trained: there is nothing to stop and to compare (is it finished already?)");
}

int Harness::compare() {
  run_continuous();
  std::vector<Run> segments;
  const std::vector<Moment> stops = plan_stops(arguments_, course_);
  for (std::size_t k = 0; k <= stops.size(); ++k) {
    const std::optional<Moment> stop = k < stops.size() ? std::optional(stops[k]) : std::nullopt;
    segments.push_back(runs_.segment(gantry::cat("segment ", k + 1), gantry::cat("segment-", k + 1),
                                     k == 0 ? nullptr : &segments.back(), stop));
    report_.runs.push_back(segments.back());
    std::cout << run_text(segments.back(), segment_text(segments.back())) << std::flush;
  }
  std::vector<const Run*> all;
  for (const Run& run : report_.runs) all.push_back(&run);
  if (const std::vector<std::string> lines = machine_differences(all); !lines.empty())
    throw Failure(kNotComparable, gantry::cat("the runs cannot be compared, as their machines differ:\n  ",
                                              gantry::join(lines, "\n  ")));
  report_.comparisons = compare_with_continuous(segments);
  report_.problems = what_is_not_shown();
  std::cout << comparisons_text(report_.comparisons) << verdict_text(report_) << std::flush;
  if (report_.equal()) return kEqual;
  tree_.keep();
  if (first_difference(report_.comparisons) != nullptr) look_for_repetition();
  return kDifferent;
}

std::vector<Comparison> Harness::compare_with_continuous(const std::vector<Run>& segments) {
  const Run& continuous = report_.runs.front();
  std::vector<Comparison> all = compare_all_recordings(continuous.work_dir, segments.back().work_dir);
  const auto append = [&](std::vector<Comparison> more) {
    children_.check();
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  for (std::size_t k = 1; k < segments.size(); ++k)
    append({compare_restored(segments[k], segments[k].work_dir + ".checkpoint")});
  for (std::size_t k = 1; k < segments.size() && !arguments_.kill(); ++k)
    append(compare_stop_and_resume(job_.hooks(), segments[k - 1], segments[k]));
  append(compare_checkpoints(continuous.work_dir, segments.back().work_dir));
  return all;
}

std::vector<std::string> Harness::what_is_not_shown() const {
  std::vector<std::string> problems;
  if (course_.steps == 0) problems.push_back("no optimizer step was taken");
  const auto need = [&](const char* recorder) {
    for (const Comparison& comparison : report_.comparisons)
      if (comparison.kind == Comparison::Kind::recorder && comparison.name == recorder && comparison.entries > 0)
        return;
    problems.push_back(gantry::cat(recorder, " recorded nothing"));
  };
  for (const char* recorder : kOfTraining) need(recorder);
  if (course_.count(gantry::Mode::eval) > 0)
    for (const char* recorder : kOfEvaluation) need(recorder);
  bool finite = false;
  if (const auto losses = find_recording(report_.runs.front().work_dir, kTrainLoss); losses.has_value())
    for (const gantry::Recording::Entry& entry : losses->entries)
      for (const gantry::Recording::Value& value : entry.values)
        finite = finite || (!value.text.empty() && std::isfinite(std::strtod(value.text.c_str(), nullptr)));
  if (!finite) problems.push_back("no training loss is a finite number: all such runs are alike");
  if (report_.checkpoints() == 0) problems.push_back("no checkpoint was compared");
  return problems;
}

/// Whether it is stopping that makes the difference.
void Harness::look_for_repetition() {
  std::cout << '\n';
  const Run again = runs_.continuous("continuous-again");
  std::cout << run_text(again, "to see whether the job repeats itself at all");
  const Run& continuous = report_.runs.front();
  std::vector<Comparison> all = compare_all_recordings(continuous.work_dir, again.work_dir);
  const std::vector<Comparison> checkpoints = compare_checkpoints(continuous.work_dir, again.work_dir);
  all.insert(all.end(), checkpoints.begin(), checkpoints.end());
  const Comparison* first = first_difference(all);
  report_.repeats_itself = first == nullptr;
  if (first == nullptr)
    std::cout << "\nIt does: run twice without a stop, it gives the same bits. The difference comes from stopping.\n";
  else
    std::cout << "\nIt does not, which is not a matter of stopping: run twice without a stop, it differs first in\n"
              << difference_text(*first, "again");
}

}  // namespace stop_and_go
