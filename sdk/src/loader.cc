#include "gantry/loader.h"

#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <utility>

#include "context_impl.h"
#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"
#include "loader_workers.h"

namespace gantry {

namespace {

std::string ids_text(std::span<const int64_t> ids) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ids.size(), kShown); ++i) text += cat(i > 0 ? ", " : "", ids[i]);
  return ids.size() > kShown ? cat(text, ", ... (", ids.size(), " in all)") : text;
}

}  // namespace

struct Loader::Impl {
  struct Stage {
    const Transform* transform;
    uint32_t stream;  // the transform's place in the configured list
  };

  Parts parts;
  Options options;
  int64_t dataset_size = 0, samples = 0, batches = 0;
  std::vector<Stage> stages;
  std::vector<int64_t> order;  // of the running epoch; written only while no worker runs
  int64_t epoch = 0, next_batch = 0;
  bool running = false;
  std::unique_ptr<LoaderWorkers> workers;  // last: its threads use all of the above

  Impl(Parts loader_parts, const Options& loader_options);

  std::size_t fold_transforms();
  Batch make_batch(int64_t index) const;
  Batch gather(std::span<const int64_t> indices) const;
  std::vector<int64_t> epoch_order(int64_t epoch_number) const;

  ComponentError::Origin transform_origin(std::size_t index) const {
    if (index < parts.transform_origins.size()) return parts.transform_origins[index];
    ComponentError::Origin origin;
    origin.component = cat("transform ", index);
    return origin;
  }

  // Runs plugin code; what it throws names it and the samples.
  template <class F, class MakeOrigin>
  static decltype(auto) blamed(const char* point, std::span<const int64_t> ids, F&& f, MakeOrigin&& make_origin) {
    try {
      return f();
    } catch (const ConfigError&) {
      throw;
    } catch (...) {
      std::string cause = current_exception_message();
      if (!ids.empty()) cause = cat("samples ", ids_text(ids), ": ", cause);
      ComponentError::Origin origin = make_origin();
      origin.point = point;
      throw ComponentError(std::move(origin), cause);
    }
  }
};

Loader::Impl::Impl(Parts loader_parts, const Options& loader_options)
    : parts(std::move(loader_parts)), options(loader_options) {
  if (!parts.dataset || !parts.sampler) throw std::logic_error("a loader needs a dataset and a sampler");
  if (options.batch_size < 1 || options.num_workers < 0) {
    throw std::logic_error(
        cat("a loader cannot make batches of ", options.batch_size, " samples with ", options.num_workers, " threads"));
  }
  dataset_size = blamed(
      "size", {}, [&] { return parts.dataset->size(); }, [&] { return parts.dataset_origin; });
  samples = blamed(
      "size", {}, [&] { return parts.sampler->size(dataset_size) * options.folds; },
      [&] { return parts.sampler_origin; });
  batches = (samples + options.batch_size - 1) / options.batch_size;
  if (options.limit_batches > 0) batches = std::min(batches, options.limit_batches);
  for (std::size_t i = fold_transforms(); i < parts.transforms.size(); ++i) {
    stages.push_back({parts.transforms[i].get(), static_cast<uint32_t>(i)});
  }
}

// A pointwise transform of bytes is 256 values per channel. They are computed by the transform itself, from a
// batch in which sample v has the value v everywhere, so that a folded transform gives the same bits; a second
// one is applied to the first one's results. Returns how many were folded.
std::size_t Loader::Impl::fold_transforms() {
  auto* lookup = dynamic_cast<LookupGather*>(parts.dataset.get());
  if (lookup == nullptr) return 0;
  const c10::NoGradGuard no_grad;
  constexpr int64_t kValues = 256;
  std::map<std::string, at::Tensor> tables;  // [C, 256]
  for (std::size_t i = 0; i < parts.transforms.size(); ++i) {
    const auto* pointwise = dynamic_cast<const PointwiseTransform*>(parts.transforms[i].get());
    if (pointwise == nullptr) return i;
    const std::string key = pointwise->pointwise_key();
    const int64_t channels = lookup->lookup_channels(key);
    if (channels < 1) return i;

    const auto table = tables.find(key);
    at::Tensor values = table != tables.end()
                            ? table->second.t().reshape({kValues, channels, 1, 1})
                            : at::arange(kValues, at::kByte).view({kValues, 1, 1, 1}).expand({kValues, channels, 1, 1});
    Batch batch;
    batch.set(key, values.contiguous());
    batch.ids.resize(kValues);
    batch.weight = kValues;
    blamed(
        "apply_batch", {}, [&] { parts.transforms[i]->apply_batch(batch, options.seed, static_cast<uint32_t>(i)); },
        [&] { return transform_origin(i); });
    const Value* result = batch.find(key);
    const auto* tensor = result == nullptr ? nullptr : std::get_if<at::Tensor>(result);
    if (tensor == nullptr || !tensor->defined() || tensor->sizes() != at::IntArrayRef({kValues, channels, 1, 1})) {
      return i;
    }
    at::Tensor folded = tensor->reshape({kValues, channels}).t().contiguous();
    if (!lookup->set_lookup(key, folded)) return i;
    tables.insert_or_assign(key, std::move(folded));
  }
  return parts.transforms.size();
}

std::vector<int64_t> Loader::Impl::epoch_order(int64_t epoch_number) const {
  std::vector<int64_t> indices;
  for (int64_t fold = 1; fold <= options.folds; ++fold) {
    const int64_t draw = (epoch_number - 1) * options.folds + fold;
    const std::vector<int64_t> order = blamed(
        "order", {},
        [&] {
          return parts.sampler->order({dataset_size, options.seed, draw, options.shuffle});
        },
        [&] { return parts.sampler_origin; });
    indices.insert(indices.end(), order.begin(), order.end());
  }
  if (static_cast<int64_t>(indices.size()) != samples) {
    throw Error(cat("the sampler gave ", indices.size(), " indices for epoch ", epoch_number,
                    "; it said that an epoch has ", samples));
  }
  for (const int64_t index : indices) {
    if (index >= 0 && index < dataset_size) continue;
    throw Error(cat("the sampler gave the index ", index, " for epoch ", epoch_number, "; the dataset has ",
                    dataset_size, " samples"));
  }
  return indices;
}

Batch Loader::Impl::gather(std::span<const int64_t> indices) const {
  Batch batch = parts.dataset->get_batch(indices);
  for (const auto& [name, value] : batch.entries()) {
    const auto* tensor = std::get_if<at::Tensor>(&value);
    const auto* list = std::get_if<std::vector<at::Tensor>>(&value);
    if (tensor == nullptr && list == nullptr) continue;
    if (list != nullptr && list->size() == indices.size()) continue;
    if (tensor != nullptr && tensor->defined() && tensor->dim() > 0 &&
        tensor->size(0) == static_cast<int64_t>(indices.size())) {
      continue;
    }
    throw Error(cat("'", name, "' is ", value_text(value), " for ", indices.size(), " samples; it should have ",
                    indices.size(), " along its first dimension"));
  }
  return batch;
}

Batch Loader::Impl::make_batch(int64_t index) const {
  const c10::NoGradGuard no_grad;
  const int64_t first = index * options.batch_size;
  const int64_t count = std::min(options.batch_size, samples - first);
  const std::span<const int64_t> indices(order.data() + first, static_cast<std::size_t>(count));

  Batch batch = blamed(
      "get_batch", indices, [&] { return gather(indices); }, [&] { return parts.dataset_origin; });
  batch.ids.assign(indices.begin(), indices.end());
  batch.first_position = (epoch - 1) * samples + first;
  batch.weight = static_cast<double>(count);
  for (const Stage& stage : stages) {
    blamed(
        "apply_batch", indices, [&] { stage.transform->apply_batch(batch, options.seed, stage.stream); },
        [&] { return transform_origin(stage.stream); });
  }
  return batch;
}

Loader::Loader(Parts parts, const Options& options) : impl_(std::make_unique<Impl>(std::move(parts), options)) {}
Loader::~Loader() = default;

int64_t Loader::samples_per_epoch() const { return impl_->samples; }
int64_t Loader::batches_per_epoch() const { return impl_->batches; }
int64_t Loader::batch_size() const { return impl_->options.batch_size; }
Dataset& Loader::dataset() { return *impl_->parts.dataset; }
Sampler& Loader::sampler() { return *impl_->parts.sampler; }

void Loader::begin(int64_t epoch, int64_t first_batch, int64_t drawn) {
  stop();
  if (drawn == 0) drawn = epoch;
  if (epoch < 1 || first_batch < 0 || first_batch > impl_->batches) {
    throw std::logic_error(
        cat("a loader of ", impl_->batches, " batches cannot begin epoch ", epoch, " at batch ", first_batch));
  }
  Impl::blamed(
      "begin_epoch", {}, [&] { impl_->parts.dataset->begin_epoch(drawn); },
      [&] { return impl_->parts.dataset_origin; });
  impl_->order = impl_->epoch_order(drawn);
  impl_->epoch = epoch;
  impl_->next_batch = first_batch;
  if (impl_->options.num_workers > 0) {
    if (!impl_->workers) {
      const int64_t ahead = std::max<int64_t>(2, 2 * impl_->options.num_workers);
      impl_->workers = std::make_unique<LoaderWorkers>(impl_->options.num_workers, ahead,
                                                       [impl = impl_.get()](int64_t b) { return impl->make_batch(b); });
    }
    impl_->workers->begin(first_batch, impl_->batches);
  }
  impl_->running = true;
}

bool Loader::next(Batch& batch) {
  if (!impl_->running) throw std::logic_error("Loader::next was called before begin, or after stop or a failed batch");
  if (impl_->next_batch == impl_->batches) return false;
  try {
    batch = impl_->workers ? impl_->workers->take() : impl_->make_batch(impl_->next_batch);
  } catch (...) {
    stop();
    throw;
  }
  ++impl_->next_batch;
  return true;
}

bool Loader::wait(std::chrono::milliseconds at_most) {
  if (!impl_->running || !impl_->workers || impl_->next_batch == impl_->batches) return true;
  return impl_->workers->wait(at_most);
}

void Loader::stop() {
  if (impl_->workers && impl_->running) impl_->workers->stop();
  impl_->running = false;
}

std::unique_ptr<Loader> make_loader(const Config& data, Context& context, bool training, int64_t limit_batches,
                                    int64_t folds) {
  Services& services = services_of(context);
  Loader::Parts parts;
  parts.dataset = context.build<Dataset>(data);
  parts.dataset_origin = origin_of(services.info("dataset", data), data.where(), "");
  const Config sampler = data.get<Config>("SAMPLER");
  parts.sampler = context.build<Sampler>(sampler);
  parts.sampler_origin = origin_of(services.info("sampler", sampler), sampler.where(), "");
  for (const Config& transform : data.get<std::vector<Config>>("TRANSFORMS")) {
    parts.transforms.push_back(context.build<Transform>(transform));
    parts.transform_origins.push_back(origin_of(services.info("transform", transform), transform.where(), ""));
  }

  Loader::Options options;
  options.batch_size = data.get<int64_t>("BATCH_SIZE");
  options.num_workers = data.get<int64_t>("NUM_WORKERS");
  options.limit_batches = limit_batches * folds;
  options.shuffle = data.has("SHUFFLE") ? data.get<bool>("SHUFFLE") : training;
  options.seed = context.seed();
  options.folds = folds;
  auto loader = std::make_unique<Loader>(std::move(parts), options);
  if (loader->samples_per_epoch() < 1)
    throw ConfigError(data.where(), cat(data.path(), ": dataset ", data.name(), " has no samples"));
  return loader;
}

}  // namespace gantry
