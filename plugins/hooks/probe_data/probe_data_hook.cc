#include <gantry/gantry.h>
#include <gantry/probe.h>
#include <gantry/world.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "step_folders.h"

namespace probe_data {

namespace {

using gantry::Mode;

constexpr Mode kModes[] = {Mode::train, Mode::eval, Mode::test};

bool plain_name(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

/// Writes what models, solvers and hooks show: of training every PROB_INTERVAL iterations and of the last one, of each
/// evaluation and test as a whole.
class ProbeDataHook final : public gantry::Hook, public gantry::ResumeObserver, public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(200);
    p.neutral();
    p.add<int64_t>("PROB_INTERVAL", 1000)
        .unit("iterations")
        .no_effect_on_result()
        .help(
            "Training is looked at every so many iterations, the first included, and at the last; <= 0: nothing is "
            "written, of evaluations neither. How often those are is EVAL_INTERVAL's.");
    p.add<std::string>("SAVE_NAME_PREFIX", "step")
        .not_empty()
        .no_effect_on_result()
        .help("Folders are named <prefix>-<iteration>.");
    p.optional<std::string>("SAVE_PROBE_PREFIX")
        .no_effect_on_result()
        .help("What the names of pictures and .npy files begin with, before the probe's name.");
    p.add<bool>("SAVE_LAST", false).no_effect_on_result().help("A link <prefix>-last leads to the latest folder.");
    p.add<std::string>("SAVE_IMAGE_POSTFIX", "png")
        .choices({"png", "jpg"})
        .no_effect_on_result()
        .help("png: pictures keep every pixel. SCEPTER's jpg is not written.");
    p.foreign("SAVE_VIDEO_POSTFIX", {"mp4"}, "no videos are written; show their frames as several pictures");
  }

  ProbeDataHook(const gantry::Config& config, gantry::Context& context)
      : interval_(config.get<int64_t>("PROB_INTERVAL")),
        prefix_(config.get<std::string>("SAVE_NAME_PREFIX")),
        file_prefix_(config.has("SAVE_PROBE_PREFIX") ? config.get<std::string>("SAVE_PROBE_PREFIX") : ""),
        save_last_(config.get<bool>("SAVE_LAST")),
        logger_(context.logger()) {
    if (!plain_name(prefix_) || prefix_.front() == '.')
      throw config.error(
          "SAVE_NAME_PREFIX",
          "SAVE_NAME_PREFIX begins a folder's name: letters, digits, '_', '-' and '.', which is not the first");
    if (!plain_name(file_prefix_))
      throw config.error("SAVE_PROBE_PREFIX",
                         "SAVE_PROBE_PREFIX begins a file's name: letters, digits, '_', '-' and '.'");
    if (config.get<std::string>("SAVE_IMAGE_POSTFIX") != "png")
      throw config.error("SAVE_IMAGE_POSTFIX",
                         "pictures are written as png, which keeps every pixel: write png, or leave "
                         "SAVE_IMAGE_POSTFIX out");
    for (const Mode mode : kModes) folders_.emplace_back(context.work_dir(), gantry::mode_name(mode), prefix_);
  }

  void on_resume(gantry::Solver& solver) override {
    if (!solver.world().is_main()) return;
    folders_of(Mode::train).remove_from(solver.iterations());  // named by the 0-based iteration
    folders_of(Mode::eval).remove_from(solver.iterations() + 1);
    folders_of(Mode::test).remove_from(solver.iterations() + 1);
  }

  void before_all_iter(gantry::Solver& solver) override {
    if (solver.mode() == Mode::train || interval_ <= 0) return;
    counted_.clear();
    solver.probes().request();
  }

  void before_iter(gantry::Solver& solver) override {
    if (solver.mode() == Mode::train && due(solver)) solver.probes().request();
  }

  void after_iter(gantry::Solver& solver) override {
    if (solver.mode() == Mode::train) {
      if (!due(solver)) return;
      counted_.clear();
      count(solver);
      write(solver, solver.total_iter());
    } else if (interval_ > 0) {
      count(solver);
    }
  }

  void after_all_iter(gantry::Solver& solver) override {
    if (solver.mode() == Mode::train || interval_ <= 0) return;
    count(solver);
    write(solver, solver.iterations());
  }

  gantry::State state() const override {
    gantry::State state;
    for (const Mode mode : kModes) {
      int64_t index = 0;
      for (const auto& [name, counts] : counts_[static_cast<std::size_t>(mode)]) {
        const std::string path = gantry::cat(gantry::mode_name(mode), "/", index++);
        state.set_text(path + "/name", name);
        state.merge(path + "/counts", counts.state());
      }
    }
    return state;
  }
  void load_state(const gantry::State& state, int) override {
    counted_.clear();
    for (const Mode mode : kModes) {
      Counts& counts = counts_[static_cast<std::size_t>(mode)];
      counts.clear();
      for (int64_t index = 0;; ++index) {
        const std::string path = gantry::cat(gantry::mode_name(mode), "/", index);
        if (!state.has(path + "/name")) break;
        counts.emplace(state.text(path + "/name"), ValueCounts::from(state.child(path + "/counts")));
      }
    }
  }

 private:
  StepFolders& folders_of(Mode mode) { return folders_[static_cast<std::size_t>(mode)]; }

  bool due(const gantry::Solver& solver) const {
    if (interval_ <= 0) return false;
    return solver.total_iter() % interval_ == 0 || solver.total_iter() + 1 == solver.total_max_iter();
  }

  // What an iteration did not show anew still stands there from an earlier one, and is counted already.
  void count(gantry::Solver& solver) {
    for (const gantry::Probe& probe : solver.probes().entries()) {
      if (probe.kind != gantry::Probe::Kind::distribution) continue;
      at::Tensor& last = counted_[probe.name];
      if (last.defined() && last.is_same(probe.value)) continue;
      last = probe.value;
      counts_[static_cast<std::size_t>(solver.mode())][probe.name].add(probe.value);
    }
  }

  void write(gantry::Solver& solver, int64_t iteration) {
    const std::vector<gantry::Probe>& probes = solver.probes().entries();
    if (!solver.world().is_main()) return;
    if (probes.empty()) {
      if (!warned_)
        logger_.warn("nothing was shown in " + solver.phase_text() + ": neither model nor hooks have probes");
      warned_ = true;
      return;
    }
    const Step step{gantry::mode_name(solver.mode()), solver.epoch(), iteration};
    const Counts& counts = counts_[static_cast<std::size_t>(solver.mode())];
    folders_of(solver.mode()).add(iteration, save_last_, [&](const std::string& folder, const Neighbours& neighbours) {
      const std::vector<Item> items = write_files(folder, probes, counts, file_prefix_);
      write_file(folder + "/meta.json", meta_json(step, items));
      write_file(folder + "/index.html", step_page(step, items, neighbours));
    });
  }

  const int64_t interval_;
  const std::string prefix_, file_prefix_;
  const bool save_last_;
  const gantry::Logger logger_;
  std::vector<StepFolders> folders_;  // by mode
  std::array<Counts, 3> counts_;      // by mode: distributions over the run
  std::map<std::string, at::Tensor> counted_;
  bool warned_ = false;
};

}  // namespace

GANTRY_PLUGIN("gantry-probe-data", GANTRY_VERSION);
GANTRY_HOOK(ProbeDataHook, "ProbeDataHook",
            "Writes pictures, tensors and values that are shown, with a page to look through.");

}  // namespace probe_data
