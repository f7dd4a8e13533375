#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "gantry/gantry.h"
#include "gantry/transform.h"

namespace gantry {

namespace {

struct NamedType {
  const char* name;
  at::ScalarType type;
};
constexpr NamedType kTypes[] = {{"float32", at::kFloat},     {"float64", at::kDouble}, {"float16", at::kHalf},
                                {"bfloat16", at::kBFloat16}, {"int64", at::kLong},     {"int32", at::kInt},
                                {"int16", at::kShort},       {"uint8", at::kByte},     {"bool", at::kBool}};

class ToTensor final : public Transform {
 public:
  static void declare(Parameters& p) {
    p.add<std::vector<std::string>>("KEYS").not_empty().help("What is to become tensors.");
    std::vector<std::string> names;
    for (const NamedType& type : kTypes) names.emplace_back(type.name);
    p.optional<std::string>("DTYPE")
        .choices(std::move(names))
        .help("The tensors' type; default: that of a tensor is kept, integers give int64, other numbers float32.");
  }

  ToTensor(const Config& config, Context&) : config_(config), keys_(config.get<std::vector<std::string>>("KEYS")) {
    if (!config.has("DTYPE")) return;
    const std::string name = config.get<std::string>("DTYPE");
    for (const NamedType& type : kTypes) {
      if (name == type.name) dtype_ = type.type;
    }
  }

  void apply(Sample& sample, CounterRng&) const override {
    for (const std::string& key : keys_) convert(sample, key, std::nullopt);
  }
  void apply_batch(Batch& batch, uint64_t, uint32_t) const override {
    for (const std::string& key : keys_) convert(batch, key, batch.size());
  }

 private:
  // `samples`: of a batch, in which a number stands for each of them.
  void convert(Fields& fields, const std::string& key, std::optional<int64_t> samples) const {
    Value* value = fields.find(key);
    if (value == nullptr) {
      fields.tensor(key);  // throws, naming what there is
    } else if (auto* tensor = std::get_if<at::Tensor>(value)) {
      *tensor = typed(fields.tensor(key));
    } else if (auto* tensors = std::get_if<std::vector<at::Tensor>>(value)) {
      for (at::Tensor& item : *tensors) item = typed(item);
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(value)) {
      const at::Tensor all = parsed(key, *texts);
      *value = samples ? all : all.squeeze(0);
    } else {
      std::vector<int64_t> shape;
      if (samples) shape.push_back(*samples);
      if (const auto* integer = std::get_if<int64_t>(value)) {
        *value = at::full(shape, *integer, dtype_.value_or(at::kLong));
      } else {
        *value = at::full(shape, std::get<double>(*value), dtype_.value_or(at::kFloat));
      }
    }
  }

  at::Tensor typed(const at::Tensor& tensor) const { return dtype_ ? tensor.to(*dtype_) : tensor; }

  at::Tensor parsed(const std::string& key, const std::vector<std::string>& texts) const {
    if (!dtype_) {
      throw config_.error("KEYS",
                          cat("names '", key, "', which holds text: say with DTYPE which type its numbers have"));
    }
    const bool integers = at::isIntegralType(*dtype_, /*includeBool=*/true);
    std::vector<int64_t> whole;
    std::vector<double> fractional;
    for (const std::string& text : texts) {
      char* end = nullptr;
      errno = 0;
      if (integers) {
        whole.push_back(std::strtoll(text.c_str(), &end, 10));
      } else {
        fractional.push_back(std::strtod(text.c_str(), &end));
      }
      if (text.empty() || *end != 0 || end != text.c_str() + text.size() || (integers && errno == ERANGE)) {
        throw config_.error("KEYS", cat("names '", key, "', which holds the text '", text,
                                        "': it is no number of type ", config_.get<std::string>("DTYPE")));
      }
    }
    return integers ? at::tensor(whole, at::kLong).to(*dtype_) : at::tensor(fractional, at::kDouble).to(*dtype_);
  }

  const Config config_;
  const std::vector<std::string> keys_;
  std::optional<at::ScalarType> dtype_;
};

}  // namespace

GANTRY_PLUGIN("gantry-field-transforms", GANTRY_VERSION);
GANTRY_TRANSFORM(ToTensor, "ToTensor", "Makes tensors of numbers and texts, and gives tensors a type.");

}  // namespace gantry
