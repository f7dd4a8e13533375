#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <gantry/file_system.h>
#include <gantry/gantry.h>
#include <gantry/json.h>
#include <gantry/metric.h>
#include <gantry/safetensors.h>
#include <gantry/world.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

#include "sample_json.h"

namespace prediction {

namespace {

namespace fs = std::filesystem;
using gantry::cat;
using gantry::Mode;

constexpr int64_t kMostListed = 1000;

/// One key over a phase: a tensor of each batch, or the samples' texts.
struct Column {
  std::vector<at::Tensor> parts;
  std::vector<std::string> texts;
};

/// What one phase has shown so far.
struct Collection {
  bool whole = false;  ///< from the phase's first batch on
  std::vector<int64_t> ids;
  std::vector<Column> columns;  ///< one for each of KEYS
};

std::string shape_text(at::IntArrayRef shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + gantry::join(sizes, ", ") + "]";
}

/// Keeps what models say of each sample, and writes it down when a phase has ended.
class PredictionHook final : public gantry::Hook, public gantry::ResumeObserver {
 public:
  static void declare(gantry::Parameters& p) {
    p.priority(200);
    p.neutral();
    p.add<std::vector<std::string>>("KEYS").not_empty().help(
        "What is kept of each sample: names of the outputs or, failing that, of the batch.");
    p.add<std::vector<std::string>>("MODES", {"test"})
        .choices({"train", "eval", "test"})
        .not_empty()
        .help("Of which phases.");
    p.add<std::string>("FILE_FORMAT", "both")
        .choices({"both", "safetensors", "jsonl"})
        .no_effect_on_result()
        .help("safetensors: one tensor for each key. jsonl: one line for each sample.");
    p.optional<int64_t>("MAX_SAMPLES")
        .at_least(1)
        .unit("samples")
        .no_effect_on_result()
        .help("Of a phase, the first so many alone: they are held in memory until it ends. Unset: all.");
  }

  PredictionHook(const gantry::Config& config, gantry::Context& context)
      : context_(context),
        keys_(config.get<std::vector<std::string>>("KEYS")),
        format_(config.get<std::string>("FILE_FORMAT")),
        max_samples_(config.has("MAX_SAMPLES") ? config.get<int64_t>("MAX_SAMPLES") : 0),
        folder_(context.work_dir() + "/predictions") {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] == "sample_id" || keys_[i] == "id")
        throw config.error("KEYS", "the samples' numbers are written anyway, as sample_id and id: leave '" + keys_[i] +
                                       "' out of KEYS");
      if (std::find(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(i), keys_[i]) !=
          keys_.begin() + static_cast<std::ptrdiff_t>(i))
        throw config.error("KEYS", "KEYS names '" + keys_[i] + "' twice");
    }
    for (const std::string& mode : config.get<std::vector<std::string>>("MODES"))
      wanted_[mode == "train" ? 0 : mode == "eval" ? 1 : 2] = true;
  }

  // Files of what comes again, and of an epoch whose first part another process has seen.
  void on_resume(gantry::Solver& solver) override {
    const bool steps = solver.max_steps() > 0;
    const int64_t now = steps ? solver.iterations() : solver.epoch();
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, none)) {
      const std::string name = entry.path().filename().string();
      for (const Mode mode : {Mode::train, Mode::eval, Mode::test}) {
        const int64_t number = number_of(name, cat(gantry::mode_name(mode), "-"));
        const bool running = mode == Mode::train && !steps && solver.phase() == gantry::Phase::iterating;
        if (number > now || (running && number == now)) fs::remove(entry.path(), none);
      }
    }
  }

  void before_all_iter(gantry::Solver& solver) override {
    Collection& collection = of(solver);
    collection = Collection{};
    collection.whole = true;
    collection.columns.resize(keys_.size());
  }

  void after_iter(gantry::Solver& solver) override {
    Collection& collection = of(solver);
    if (!wanted(solver) || !collection.whole) return;
    const gantry::Batch& batch = solver.batch();
    int64_t count = batch.size();
    if (max_samples_ > 0) count = std::min(count, max_samples_ - static_cast<int64_t>(collection.ids.size()));
    if (count <= 0) return;
    for (std::size_t k = 0; k < keys_.size(); ++k) add(solver, keys_[k], count, collection.columns[k]);
    collection.ids.insert(collection.ids.end(), batch.ids.begin(), batch.ids.begin() + count);
  }

  void after_all_iter(gantry::Solver& solver) override {
    Collection collection = std::exchange(of(solver), {});
    if (!wanted(solver)) return;
    if (!collection.whole) {
      context_.logger().warn("predictions of " + solver.phase_text() +
                             " are not written: another process has seen its first part");
      return;
    }
    if (!collection.ids.empty()) write(solver, collection);
  }

 private:
  static std::size_t index(Mode mode) { return static_cast<std::size_t>(mode); }
  Collection& of(const gantry::Solver& solver) { return collections_[index(solver.mode())]; }
  bool wanted(const gantry::Solver& solver) const { return wanted_[index(solver.mode())]; }

  /// Of "<beginning><number>.jsonl" and the like; -1 for other names.
  static int64_t number_of(const std::string& name, const std::string& beginning) {
    if (!name.starts_with(beginning)) return -1;
    int64_t number = -1;
    const char* end = name.data() + name.size();
    const auto result = std::from_chars(name.data() + beginning.size(), end, number);
    return result.ec == std::errc() && result.ptr != end ? number : -1;
  }

  static void add(const gantry::Solver& solver, const std::string& key, int64_t count, Column& column) {
    const gantry::Batch& batch = solver.batch();
    for (const gantry::Fields* fields :
         {static_cast<const gantry::Fields*>(&solver.outputs()), static_cast<const gantry::Fields*>(&batch)}) {
      const gantry::Value* value = fields->find(key);
      if (value == nullptr) continue;
      const auto* texts = std::get_if<std::vector<std::string>>(value);
      if (texts == nullptr) break;
      if (static_cast<int64_t>(texts->size()) != batch.size())
        throw gantry::Error(cat("KEYS: '", key, "' has ", texts->size(), " texts for a batch of ", batch.size(),
                                " samples; predictions are one for each"));
      column.texts.insert(column.texts.end(), texts->begin(), texts->begin() + count);
      return;
    }
    const at::Tensor& tensor = gantry::find_tensor(batch, solver.outputs(), key);
    if (tensor.dim() == 0 || tensor.size(0) != batch.size())
      throw gantry::Error(cat("KEYS: '", key, "' has the shape ", shape_text(tensor.sizes()), " for a batch of ",
                              batch.size(), " samples; predictions have one row for each"));
    if (!column.parts.empty() && column.parts.front().sizes().slice(1) != tensor.sizes().slice(1))
      throw gantry::Error(cat("KEYS: '", key, "' has the shape ", shape_text(tensor.sizes()), ", and had ",
                              shape_text(column.parts.front().sizes()),
                              " before; predictions of one phase have the same shape for each sample"));
    column.parts.push_back(tensor.detach().narrow(0, 0, count).to(at::kCPU, tensor.scalar_type(), false, true));
  }

  std::string stem(const gantry::Solver& solver) const {
    std::string name = folder_ + "/" + gantry::mode_name(solver.mode());
    const int64_t number = solver.max_steps() > 0 ? solver.iterations() : solver.epoch();
    if (solver.mode() != Mode::test && number > 0) name += cat("-", number);
    if (context_.world().size() > 1) name += cat("-rank", context_.world().rank());
    return name;
  }

  void write(const gantry::Solver& solver, const Collection& collection) {
    const auto count = static_cast<int64_t>(collection.ids.size());
    std::vector<int64_t> order(collection.ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return collection.ids[static_cast<std::size_t>(a)] < collection.ids[static_cast<std::size_t>(b)];
    });
    at::Tensor rows = at::empty({count}, at::kLong), ids = at::empty({count}, at::kLong);
    for (int64_t i = 0; i < count; ++i) {
      rows.mutable_data_ptr<int64_t>()[i] = order[static_cast<std::size_t>(i)];
      ids.mutable_data_ptr<int64_t>()[i] = collection.ids[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    }
    std::vector<std::pair<std::string, at::Tensor>> tensors = {{"sample_id", ids}};
    for (std::size_t k = 0; k < keys_.size(); ++k)
      if (!collection.columns[k].parts.empty())
        tensors.emplace_back(keys_[k], at::cat(collection.columns[k].parts).index_select(0, rows));

    const std::string name = stem(solver);
    if (format_ != "jsonl") {
      gantry::PutTo file = context_.files().put_to(name + ".safetensors");
      gantry::write_safetensors(
          file.path(), tensors,
          {{"mode", gantry::mode_name(solver.mode())}, {"iteration", std::to_string(solver.iterations())}});
      file.commit();
    }
    if (format_ != "safetensors") write_lines(name + ".jsonl", collection, order, tensors);
    context_.logger().info(cat(solver.phase_text(), ": predictions of ", count, count == 1 ? " sample" : " samples",
                               " in ", name, format_ == "jsonl" ? ".jsonl" : ".safetensors"));
  }

  void write_lines(const std::string& path, const Collection& collection, const std::vector<int64_t>& order,
                   const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
    gantry::PutTo file = context_.files().put_to(path);
    std::ofstream out(file.path(), std::ios::binary);
    const at::Tensor& ids = tensors.front().second;
    std::vector<const at::Tensor*> listed(keys_.size());
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      for (const auto& [name, tensor] : tensors)
        if (name == keys_[k] && tensor.numel() / tensor.size(0) <= kMostListed) listed[k] = &tensor;
      if (listed[k] != nullptr || !collection.columns[k].texts.empty() || std::exchange(said_, true)) continue;
      context_.logger().info(
          cat("'", keys_[k], "' has more than ", kMostListed, " values a sample: it is left out of the .jsonl files"));
    }
    for (std::size_t row = 0; row < order.size(); ++row) {
      const auto place = static_cast<int64_t>(row);
      std::string line = cat("{\"id\": ", ids.const_data_ptr<int64_t>()[place]);
      for (std::size_t k = 0; k < keys_.size(); ++k) {
        const std::vector<std::string>& texts = collection.columns[k].texts;
        if (!texts.empty())
          line += cat(", ", gantry::json_string(keys_[k]), ": ",
                      gantry::json_string(texts[static_cast<std::size_t>(order[row])]));
        else if (listed[k] != nullptr)
          line += cat(", ", gantry::json_string(keys_[k]), ": ", sample_json(listed[k]->select(0, place)));
      }
      out << line << "}\n";
    }
    errno = 0;
    out.close();
    if (!out) throw gantry::Error(cat("cannot write ", path, ": ", std::strerror(errno != 0 ? errno : EIO)));
    file.commit();
  }

  gantry::Context& context_;
  const std::vector<std::string> keys_;
  const std::string format_;
  const int64_t max_samples_;  // 0: all
  const std::string folder_;
  std::array<bool, 3> wanted_{};           // by mode
  std::array<Collection, 3> collections_;  // by mode: an evaluation may run in the middle of a training epoch
  bool said_ = false;
};

}  // namespace

GANTRY_PLUGIN("gantry-prediction", GANTRY_VERSION);
GANTRY_HOOK(PredictionHook, "PredictionHook", "Saves what the model says of each sample of a test or an evaluation.");

}  // namespace prediction
