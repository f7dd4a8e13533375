#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <c10/core/GradMode.h>

#include "gantry/transform.h"
#include "parity/parity.h"
#include "unit/plugin_under_test.h"

// Resize and RandomResizedCrop give what PyTorch's interpolation gives, and for bytes what Pillow's does.

namespace {

using Keys = std::vector<std::pair<std::string, gantry::Config>>;

parity::Numbers transformed(const std::string& name, const Keys& config, const at::Tensor& images,
                            const std::string& check, const std::string& args) {
  const auto transform = PluginUnderTest("gantry-resize").build<gantry::Transform>(name, map_config(config));
  gantry::Batch batch;
  batch.set("img", images);
  batch.ids.assign(static_cast<std::size_t>(images.size(0)), 0);
  transform->apply_batch(batch, /*seed=*/5, /*stream=*/1);
  parity::Numbers numbers;
  numbers.texts = {{"check", check}, {"args", args}};
  numbers.tensors = {{"images", images.contiguous()}, {"result", batch.tensor("img")}};
  return numbers;
}

std::string json_list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return "[" + text + "]";
}

}  // namespace

TEST_CASE("Resize gives the pixels of PyTorch's interpolation and within a step or two those of Pillow") {
  at::manual_seed(1);
  std::vector<parity::Numbers> all;
  const std::vector<std::vector<std::string>> sizes = {{"7", "5"}, {"31", "40"}, {"9"}, {"50"}, {"24", "17"}};
  for (const char* method : {"bilinear", "bicubic", "nearest"}) {
    for (const auto& size : sizes) {
      for (const auto dtype : {at::kByte, at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
        for (const auto& shape : {std::vector<int64_t>{3, 3, 24, 17}, {2, 1, 10, 33}, {1, 5, 16, 16}}) {
          const at::Tensor images =
              dtype == at::kByte ? at::randint(0, 256, shape, at::kByte) : at::rand(shape, at::kFloat).to(dtype);
          all.push_back(transformed("Resize", {{"SIZE", list_config(size)}, {"INTERPOLATION", text_config(method)}},
                                    images, "resize",
                                    R"({"size": )" + json_list(size) + R"(, "method": ")" + method + R"("})"));
        }
      }
    }
  }
  parity::compare("transforms.py", all);
}

TEST_CASE("RandomResizedCrop gives pieces as PyTorch resizes them and as torchvision draws them") {
  at::manual_seed(1);
  std::vector<parity::Numbers> all;
  struct Case {
    const char* method;
    std::vector<std::string> size, scale, ratio;
  };
  const std::vector<Case> cases = {{"bilinear", {"6", "5"}, {"0.2", "0.6"}, {"0.5", "1.5"}},
                                   {"bicubic", {"4", "7"}, {"0.08", "1.0"}, {"0.75", "1.3333333333333333"}}};
  for (const Case& one : cases) {
    // Pixels that all differ: no two pieces look alike.
    const at::Tensor image = at::randperm(9 * 7).to(at::kFloat).view({1, 1, 9, 7});
    all.push_back(transformed("RandomResizedCrop",
                              {{"SIZE", list_config(one.size)},
                               {"SCALE", list_config(one.scale)},
                               {"RATIO", list_config(one.ratio)},
                               {"INTERPOLATION", text_config(one.method)}},
                              image.expand({3000, 1, 9, 7}), "random_resized_crop",
                              R"({"size": )" + json_list(one.size) + R"(, "method": ")" + one.method +
                                  R"(", "scale": )" + json_list(one.scale) + R"(, "ratio": )" + json_list(one.ratio) +
                                  "}"));
  }
  parity::compare("transforms.py", all);
}
