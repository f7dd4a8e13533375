#include "safetensors_header.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "gantry/error.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"
#include "json_read.h"
#include "message.h"
#include "safetensors_format.h"

namespace gantry {
namespace {

using Entry = SafetensorsFile::Entry;

constexpr int kDepth = 3;             // of the header, of one tensor, of its shape
constexpr std::size_t kMaxDims = 64;  // more than ATen's own kernels take
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

std::string quoted(const Entry& entry) { return quoted_for_message(entry.name); }

/// The bytes of a tensor. Sizes multiply without overflow even where a 0 among them makes the product 0, since ATen
/// computes strides from them.
int64_t byte_size(const Entry& entry) {
  int64_t product = static_cast<int64_t>(c10::elementSize(entry.dtype));
  bool empty = false;
  for (const int64_t size : entry.shape) {
    empty = empty || size == 0;
    if (size > 0 && product > kLargest / size) {
      throw Error(cat(quoted(entry), " has the shape ", shape_text(entry.shape), ", whose bytes cannot be counted"));
    }
    product *= std::max<int64_t>(size, 1);
  }
  return empty ? 0 : product;
}

/// Takes {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"key": "text"}}.
class HeaderReader final : public JsonEvents {
 public:
  SafetensorsHeader result() && { return std::move(header_); }

  void begin_object() override {
    if (place_ == Place::outside) {
      place_ = Place::names;
    } else if (place_ == Place::names && metadata_) {
      place_ = Place::metadata;
    } else if (place_ == Place::names) {
      place_ = Place::fields;
    } else {
      refuse("an object");
    }
  }
  void end_object() override {
    if (place_ == Place::fields) {
      finish_entry();
      place_ = Place::names;
    } else if (place_ == Place::metadata) {
      place_ = Place::names;
    } else {
      place_ = Place::outside;
    }
  }
  void begin_array() override {
    if (place_ != Place::fields || (field_ != "shape" && field_ != "data_offsets")) refuse("a list");
    place_ = Place::numbers;
    numbers_.clear();
  }
  void end_array() override {
    place_ = Place::fields;
    (field_ == "shape" ? shape_ : offsets_) = numbers_;
  }
  void key(std::string name) override {
    if (place_ == Place::names) {
      metadata_ = name == kSafetensorsMetadata;
      if (!metadata_) begin_entry(std::move(name));
    } else if (place_ == Place::fields && name != "dtype" && name != "shape" && name != "data_offsets") {
      throw Error(cat(quoted_for_message(name_), " has a field ", quoted_for_message(name),
                      "; known: dtype, shape, data_offsets"));
    } else {
      field_ = std::move(name);
    }
  }
  void scalar(JsonScalar value) override {
    if (place_ == Place::metadata && std::holds_alternative<std::string>(value)) {
      header_.metadata.emplace_back(field_, std::get<std::string>(std::move(value)));
    } else if (place_ == Place::fields && field_ == "dtype" && std::holds_alternative<std::string>(value)) {
      dtype_ = std::get<std::string>(std::move(value));
    } else if (place_ == Place::numbers && std::holds_alternative<uint64_t>(value) &&
               std::get<uint64_t>(value) <= static_cast<uint64_t>(kLargest)) {
      if (numbers_.size() == kMaxDims) throw Error(cat(where(), " has more than ", kMaxDims, " numbers"));
      numbers_.push_back(static_cast<int64_t>(std::get<uint64_t>(value)));
    } else {
      refuse(json_scalar_text(value));
    }
  }

 private:
  enum class Place { outside, names, metadata, fields, numbers };

  std::string where() const {
    if (place_ == Place::outside) return "the header";
    if (place_ == Place::metadata) return cat(kSafetensorsMetadata, "'s ", quoted_for_message(field_));
    if (place_ == Place::names) return metadata_ ? std::string(kSafetensorsMetadata) : quoted_for_message(name_);
    return cat(field_, " of ", quoted_for_message(name_));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    const char* wanted = "an object";
    if (place_ == Place::metadata || (place_ == Place::fields && field_ == "dtype")) wanted = "a text";
    if (place_ == Place::fields && field_ != "dtype") wanted = "a list of numbers";
    if (place_ == Place::numbers) wanted = "whole numbers, 0 or more, of 63 bits";
    throw Error(cat(where(), place_ == Place::numbers ? " must hold " : " must be ", wanted, ", not ", what));
  }
  void begin_entry(std::string name) {
    if (const std::string defect = safetensors_name_defect(name); !defect.empty()) {
      throw Error(cat("the name of tensor ", header_.entries.size() + 1, " ", defect));
    }
    name_ = std::move(name);
    dtype_.reset();
    shape_.reset();
    offsets_.reset();
  }
  void finish_entry() {
    for (const auto& [field, present] : {std::pair("dtype", dtype_.has_value()), std::pair("shape", shape_.has_value()),
                                         std::pair("data_offsets", offsets_.has_value())}) {
      if (!present) throw Error(cat(quoted_for_message(name_), " has no ", field));
    }
    const std::optional<at::ScalarType> dtype = dtype_of_safetensors(*dtype_);
    if (!dtype) {
      throw Error(cat(quoted_for_message(name_), " has the dtype ", quoted_for_message(*dtype_),
                      "; known: ", safetensors_dtypes()));
    }
    if (offsets_->size() != 2) {
      throw Error(cat("data_offsets of ", quoted_for_message(name_), " must hold 2 numbers, not ", offsets_->size()));
    }
    Entry entry{std::move(name_), *dtype, std::move(*shape_), (*offsets_)[0], (*offsets_)[1]};
    const int64_t bytes = byte_size(entry);
    if (entry.begin > entry.end || entry.end - entry.begin != bytes) {
      throw Error(cat(quoted(entry), " of ", *dtype_, " ", shape_text(entry.shape), " takes ", bytes,
                      " bytes, but its data_offsets are ", entry.begin, " and ", entry.end));
    }
    header_.entries.push_back(std::move(entry));
  }

  SafetensorsHeader header_;
  Place place_ = Place::outside;
  bool metadata_ = false;  // the name read last is the metadata's
  std::string name_, field_;
  std::optional<std::string> dtype_;
  std::optional<std::vector<int64_t>> shape_, offsets_;
  std::vector<int64_t> numbers_;
};

void check_bytes(const std::vector<Entry>& entries, int64_t data_size) {
  const Entry* before = nullptr;
  for (const Entry& entry : entries) {
    const int64_t expected = before == nullptr ? 0 : before->end;
    if (entry.begin < expected) {
      throw Error(cat(quoted(entry), " begins at byte ", entry.begin, ", inside ", quoted(*before), " (", before->begin,
                      " to ", before->end, ")"));
    }
    if (entry.begin > expected) {
      throw Error(cat("bytes ", expected, " to ", entry.begin, ", before ", quoted(entry), ", belong to no tensor"));
    }
    if (entry.end > data_size) {
      throw Error(cat(quoted(entry), " ends at byte ", entry.end, ", but the data behind the header end at byte ",
                      data_size, ": the file is truncated"));
    }
    before = &entry;
  }
  const int64_t end = before == nullptr ? 0 : before->end;
  if (end != data_size) {
    throw Error(cat("the tensors end at byte ", end, ", but the data behind the header end at byte ", data_size));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_size) {
  if (json.empty() || json[0] != '{') throw Error("its header does not begin with '{': it is no safetensors file");
  HeaderReader reader;
  read_json(json, kDepth, reader);
  SafetensorsHeader header = std::move(reader).result();
  std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_bytes(header.entries, data_size);
  return header;
}

}  // namespace gantry
