#include <ATen/ops/empty.h>
#include <gantry/dataset.h>
#include <gantry/file_system.h>
#include <gantry/gantry.h>
#include <gantry/loader.h>
#include <gantry/random.h>
#include <gantry/world.h>

#include <algorithm>
#include <map>
#include <utility>

#include "loss_history.h"

namespace val_loss {

namespace {

using gantry::cat;

/// Samples of a batch, by their places.
gantry::Batch selected(const gantry::Batch& batch, const std::vector<int64_t>& places) {
  if (static_cast<int64_t>(places.size()) == batch.size()) return batch;
  at::Tensor index = at::empty({static_cast<int64_t>(places.size())}, at::kLong);
  std::copy(places.begin(), places.end(), index.mutable_data_ptr<int64_t>());
  gantry::Batch part = batch;
  const auto samples = static_cast<std::size_t>(batch.size());
  const auto pick = [&](auto& list) {
    if (list.size() != samples) return;  // not one for each sample
    auto picked = std::exchange(list, {});
    for (const int64_t place : places) list.push_back(picked[static_cast<std::size_t>(place)]);
  };
  for (auto& [name, value] : part.entries()) {
    if (auto* tensor = std::get_if<at::Tensor>(&value)) *tensor = tensor->index_select(0, index);
    if (auto* texts = std::get_if<std::vector<std::string>>(&value)) pick(*texts);
    if (auto* tensors = std::get_if<std::vector<at::Tensor>>(&value)) pick(*tensors);
  }
  pick(part.ids);
  part.weight = batch.weight * static_cast<double>(places.size()) / static_cast<double>(batch.size());
  return part;
}

/// Watches the loss on data of its own, with the same random numbers every time, so that two evaluations differ by the
/// model alone: what a diffusion model is judged by, whose loss is mostly noise.
class ValLossHook final : public gantry::Hook, public gantry::ResumeObserver, public gantry::Stateful {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(200);
    p.neutral();
    p.component<gantry::Dataset>("DATA").help("What the loss is computed of.");
    p.add<int64_t>("VAL_INTERVAL", 1000)
        .unit("iterations")
        .no_effect_on_result()
        .help(
            "Before every so many training iterations, the first included, and when training ends; <= 0: then alone.");
    p.add<int64_t>("VAL_LIMITATION_SIZE", 1000000)
        .at_least(1)
        .unit("samples")
        .no_effect_on_result()
        .help("At most so many samples of DATA, rounded up to whole batches.");
    p.add<int64_t>("VAL_SEED", 2025).at_least(0).no_effect_on_result().help("Where the fixed noise comes from.");
    p.add<std::vector<std::string>>("META_FIELD", std::vector<std::string>{})
        .no_effect_on_result()
        .help("Texts of the batch by whose values the loss is also averaged.");
    p.add<std::string>("SAVE_FOLDER", "val_loss")
        .not_empty()
        .no_effect_on_result()
        .help("The folder in WORK_DIR for history.json and curve.svg.");
    p.foreign("VAL_DIM", {"all"}, "the loss is the mean that the model gives");
  }

  ValLossHook(const gantry::Config& config, gantry::Context& context)
      : context_(context),
        interval_(config.get<int64_t>("VAL_INTERVAL")),
        seed_(static_cast<uint64_t>(config.get<int64_t>("VAL_SEED"))),
        fields_(config.get<std::vector<std::string>>("META_FIELD")) {
    const std::string folder = config.get<std::string>("SAVE_FOLDER");
    if (folder.front() == '/' || ("/" + folder + "/").find("/../") != std::string::npos)
      throw config.error("SAVE_FOLDER", "SAVE_FOLDER is a folder in WORK_DIR; '" + folder + "' leads out of it");
    folder_ = context.work_dir() + "/" + folder;
    auto data = config.get<gantry::Config>("DATA");
    if (!data.has("MODE")) data = data.with("MODE", gantry::Config::scalar("eval", data.where()));
    const int64_t batch_size = data.get<int64_t>("BATCH_SIZE");
    const int64_t limit = config.get<int64_t>("VAL_LIMITATION_SIZE");
    const int64_t batches = context.dry_run() ? 2 : limit / batch_size + (limit % batch_size != 0);
    loader_ = gantry::make_loader(data, context, /*training=*/false, batches);
  }

  void before_iter(gantry::Solver& solver) override {
    if (solver.mode() == gantry::Mode::train && interval_ > 0 && solver.total_iter() % interval_ == 0) evaluate(solver);
  }
  void after_epoch(gantry::Solver& solver) override {
    if (solver.mode() == gantry::Mode::train && solver.last_epoch()) evaluate(solver);
  }

  // What a process that was killed has written of later iterations goes.
  void on_resume(gantry::Solver& solver) override {
    if (!history_.entries().empty()) write(solver);
  }

  gantry::State state() const override { return history_.state(); }
  void load_state(const gantry::State& state, int) override { history_ = LossHistory::from(state); }

 private:
  struct Mean {
    gantry::MeanMeter loss;
    int64_t samples = 0;
  };

  void evaluate(gantry::Solver& solver) {
    if (!history_.entries().empty() && history_.entries().back().iteration == solver.iterations()) return;
    Mean all;
    std::map<std::pair<std::string, std::string>, Mean> parts;  // by field and value
    gantry::Batch batch;
    loader_->begin(1);
    for (int64_t index = 0; loader_->next(batch); ++index) {
      uint32_t number = 0;
      for (const std::vector<int64_t>& places : groups(batch)) {
        const gantry::Batch group = selected(batch, places);
        const uint64_t seed = gantry::CounterRng(seed_, static_cast<uint64_t>(index), number++).next_u64();
        const gantry::Outputs outputs = outputs_for(solver, group, seed);
        const at::Tensor& loss = loss_of(outputs);
        const double weight = weight_of(outputs, group.weight);
        const auto add = [&](Mean& mean) {
          mean.loss.add(loss, weight);
          mean.samples += group.size();
        };
        add(all);
        for (const std::string& field : fields_) add(parts[{field, texts(group, field).front()}]);
      }
    }
    loader_->stop();
    Entry entry{solver.iterations(), solver.epoch(), all.loss.mean(), all.samples, {}};
    for (const auto& [name, mean] : parts)
      entry.parts.push_back({name.first, name.second, mean.loss.mean(), mean.samples});
    history_.add(std::move(entry));
    write(solver);
    solver.logger().info(cat("validation loss after ", solver.iterations(),
                             " iterations: ", gantry::short_number(history_.entries().back().loss)));
  }

  // A model's complaint would otherwise seem to be about the training data.
  static gantry::Outputs outputs_for(gantry::Solver& solver, const gantry::Batch& batch, uint64_t seed) {
    try {
      return solver.evaluate(batch, seed);
    } catch (const gantry::Error& error) {
      throw gantry::Error(cat("on a batch of DATA, ", error.what()));
    }
  }

  /// Samples that have the same values of all fields, so that a group's loss counts for each of them.
  std::vector<std::vector<int64_t>> groups(const gantry::Batch& batch) const {
    std::map<std::vector<std::string>, std::vector<int64_t>> by_values;
    for (int64_t place = 0; place < batch.size(); ++place) {
      std::vector<std::string> values;
      for (const std::string& field : fields_) values.push_back(texts(batch, field)[static_cast<std::size_t>(place)]);
      by_values[values].push_back(place);
    }
    std::vector<std::vector<int64_t>> groups;
    for (auto& entry : by_values) groups.push_back(std::move(entry.second));
    return groups;
  }

  static const std::vector<std::string>& texts(const gantry::Batch& batch, const std::string& field) {
    const gantry::Value* value = batch.find(field);
    const auto* texts = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
    if (texts != nullptr && static_cast<int64_t>(texts->size()) == batch.size()) return *texts;
    std::vector<std::string> known;
    for (const auto& [name, other] : batch.entries())
      if (std::holds_alternative<std::vector<std::string>>(other)) known.push_back(name);
    throw gantry::Error(cat("META_FIELD: the batches of DATA have no texts '", field,
                            "', one for each sample; they have ",
                            known.empty() ? "none at all" : gantry::join(known, ", ")));
  }

  static const at::Tensor& loss_of(const gantry::Outputs& outputs) {
    const gantry::Value* value = outputs.find("loss");
    const auto* loss = value == nullptr ? nullptr : std::get_if<at::Tensor>(value);
    if (loss != nullptr && loss->defined() && loss->dim() == 0) return *loss;
    std::vector<std::string> names;
    for (const auto& entry : outputs.entries()) names.push_back(entry.first);
    throw gantry::Error(
        "the model gives no 0-dim \"loss\" for the batches of DATA, as it does where they have targets; "
        "its outputs are: " +
        (names.empty() ? "none" : gantry::join(names, ", ")));
  }

  static double weight_of(const gantry::Outputs& outputs, double otherwise) {
    const gantry::Value* value = outputs.find("weight");
    if (value == nullptr) return otherwise;
    if (const auto* number = std::get_if<double>(value)) return *number;
    if (const auto* count = std::get_if<int64_t>(value)) return static_cast<double>(*count);
    return otherwise;
  }

  void write(gantry::Solver& solver) {
    if (!solver.world().is_main()) return;
    const gantry::FileSystem& files = context_.files().of(folder_);
    files.put_object(history_.json(), folder_ + "/history.json");
    files.put_object(curve_svg("Validation loss", "training iterations", "loss", history_.curves()),
                     folder_ + "/curve.svg");
  }

  gantry::Context& context_;
  const int64_t interval_;
  const uint64_t seed_;
  const std::vector<std::string> fields_;
  std::string folder_;
  std::unique_ptr<gantry::Loader> loader_;
  LossHistory history_;
};

}  // namespace

GANTRY_PLUGIN("gantry-val-loss", GANTRY_VERSION);
GANTRY_HOOK(ValLossHook, "ValLossHook", "Follows the loss on data of its own with fixed noise, and draws its curve.");

}  // namespace val_loss
