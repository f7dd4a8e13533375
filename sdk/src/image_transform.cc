#include "gantry/image_transform.h"

#include <ATen/ops/stack.h>

#include <algorithm>
#include <utility>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"

namespace gantry {

namespace {

Value stacked_if_alike(std::vector<at::Tensor> images) {
  const bool alike = !images.empty() && std::all_of(images.begin(), images.end(), [&](const at::Tensor& image) {
    return image.scalar_type() == images[0].scalar_type() && image.sizes() == images[0].sizes();
  });
  if (alike) return at::stack(images);
  return images;
}

}  // namespace

void ImageTransform::declare(Parameters& parameters) {
  parameters.add<std::vector<std::string>>("INPUT_KEY", {"img"})
      .not_empty()
      .help("What the batch calls the images: one name, or several whose images are changed alike.");
  parameters.optional<std::vector<std::string>>("OUTPUT_KEY")
      .not_empty()
      .help("What to call the results, a name for each of INPUT_KEY; default: they replace the images.");
  parameters.foreign("BACKEND", {"pillow", "cv2", "torchvision"},
                     "leave it out: images are tensors, and there is one implementation");
}

ImageTransform::ImageTransform(const Config& config)
    : config_(config), input_keys_(config.get<std::vector<std::string>>("INPUT_KEY")) {
  output_keys_ = config.has("OUTPUT_KEY") ? config.get<std::vector<std::string>>("OUTPUT_KEY") : input_keys_;
  if (output_keys_.size() == input_keys_.size()) return;
  throw config.error("OUTPUT_KEY", cat("has ", output_keys_.size(), output_keys_.size() == 1 ? " name" : " names",
                                       ", INPUT_KEY has ", input_keys_.size(), "; each image needs one"));
}

ImageTransform::~ImageTransform() = default;

void ImageTransform::apply(Sample& sample, CounterRng& rng) const {
  const CounterRng start = rng;
  for (std::size_t k = 0; k < input_keys_.size(); ++k) {
    const std::string& key = input_keys_[k];
    const Value* value = sample.find(key);
    const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<at::Tensor>>(value);
    if (list == nullptr) {
      rng = start;
      sample.set(output_keys_[k], transform_one(key, sample.tensor(key), rng));
      continue;
    }
    std::vector<at::Tensor> results;
    for (const at::Tensor& image : *list) {
      rng = start;
      results.push_back(transform_one(key, image, rng));
    }
    sample.set(output_keys_[k], std::move(results));
  }
}

void ImageTransform::apply_batch(Batch& batch, uint64_t seed, uint32_t stream) const {
  std::vector<CounterRng> start;
  start.reserve(batch.ids.size());
  for (int64_t i = 0; i < batch.size(); ++i) {
    start.emplace_back(seed, static_cast<uint64_t>(batch.first_position + i), stream);
  }
  const auto check_length = [&](const std::string& key, const Value& value, int64_t length) {
    if (length == batch.size()) return;
    throw Error(cat("'", key, "' is ", value_text(value), " in a batch of ", batch.size(),
                    " samples; it should have one image for each"));
  };
  for (std::size_t k = 0; k < input_keys_.size(); ++k) {
    const std::string& key = input_keys_[k];
    std::vector<CounterRng> random = start;
    const Value* value = batch.find(key);
    const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<at::Tensor>>(value);
    if (list == nullptr) {
      const at::Tensor images = batch.tensor(key);
      check_length(key, images, images.dim() == 0 ? -1 : images.size(0));
      batch.set(output_keys_[k], transform(key, images, random));
      continue;
    }
    check_length(key, *value, static_cast<int64_t>(list->size()));
    std::vector<at::Tensor> results;
    for (std::size_t i = 0; i < list->size(); ++i) results.push_back(transform_one(key, (*list)[i], random[i]));
    batch.set(output_keys_[k], stacked_if_alike(std::move(results)));
  }
}

at::Tensor ImageTransform::transform_one(const std::string& key, const at::Tensor& image, CounterRng& rng) const {
  return transform(key, image.unsqueeze(0), {&rng, 1}).squeeze(0);
}

void ImageTransform::require_pictures(const std::string& key, const at::Tensor& images) const {
  const bool pictures = images.dim() >= 3 && images.size(-1) > 0 && images.size(-2) > 0;
  if (pictures) return;
  throw config_.error("INPUT_KEY", cat("'", key, "' has shape ", images.sizes(),
                                       ": it has no height and width, which come last, after the samples"));
}

std::string ImageTransform::in_place_key() const {
  return input_keys_.size() == 1 && input_keys_ == output_keys_ ? input_keys_[0] : std::string();
}

}  // namespace gantry
