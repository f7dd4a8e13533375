#include "gantry/recording.h"

#include <ATen/ops/empty.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "file_bytes.h"
#include "gantry/append_file.h"
#include "gantry/error.h"
#include "gantry/json.h"
#include "gantry/state.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"
#include "json_read.h"
#include "xxh3.h"

namespace gantry {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFewNumbers = 8;
constexpr std::size_t kBuffer = std::size_t{1} << 16;
constexpr const char* kText = "text";

template <class T>
std::string numbers_text(const at::Tensor& values) {
  std::vector<std::string> items;
  const T* data = values.const_data_ptr<T>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    if constexpr (std::is_same_v<T, bool>)
      items.push_back(data[i] ? "true" : "false");
    else if constexpr (std::is_integral_v<T>)
      items.push_back(std::to_string(data[i]));
    else
      items.push_back(number_text(static_cast<double>(data[i])));
  }
  return values.dim() == 0 ? items.front() : cat("[", join(items, ", "), "]");
}

/// The values themselves, where there are few and their type is a usual one.
std::string few_numbers(const at::Tensor& values) {
  if (values.numel() > kFewNumbers) return {};
  switch (values.scalar_type()) {
    case at::kFloat:
      return numbers_text<float>(values);
    case at::kDouble:
      return numbers_text<double>(values);
    case at::kHalf:
      return numbers_text<at::Half>(values);
    case at::kBFloat16:
      return numbers_text<at::BFloat16>(values);
    case at::kLong:
      return numbers_text<int64_t>(values);
    case at::kInt:
      return numbers_text<int32_t>(values);
    case at::kByte:
      return numbers_text<uint8_t>(values);
    case at::kBool:
      return numbers_text<bool>(values);
    default:
      return {};
  }
}

std::string digest(const void* data, std::size_t size) {
  Xxh3 hash;
  hash.update(data, size);
  return hash.hex();
}

/// The place of the first entry that counts from `event` on, and of the file's end without a last line that was cut
/// short.
int64_t cut_place(const std::string& path, int64_t event) {
  std::ifstream file(path, std::ios::binary);
  int64_t place = 0;
  std::string line;
  constexpr std::string_view kBegin = "{\"event\": ";
  while (std::getline(file, line) && !file.eof()) {
    if (line.starts_with(kBegin)) {
      int64_t number = 0;
      std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), number);
      if (number >= event) break;
    }
    place += static_cast<int64_t>(line.size()) + 1;
  }
  return place;
}

}  // namespace

struct RecordingWriter::Impl {
  std::string base, recorder;
  double tolerance;
  bool keep_whole;
  std::string pending;
  std::unique_ptr<AppendFile> lines, values;
  int64_t values_size = 0;
  bool fresh = true;  ///< no cut has said that what is there goes on

  std::string path() const { return base + ".jsonl"; }
  std::string values_path() const { return base + ".values"; }

  void open() {
    if (lines != nullptr) return;
    std::error_code ignored;
    if (fresh) {
      fs::remove(path(), ignored);
      fs::remove(values_path(), ignored);
    }
    const bool begins = !fs::exists(path(), ignored) || fs::file_size(path(), ignored) == 0;
    lines = std::make_unique<AppendFile>(path());
    if (begins)
      pending = cat(json_object({{"recorder", json_string(recorder)}, {"tolerance", json_number(tolerance)}}), "\n");
    if (!keep_whole) return;
    values = std::make_unique<AppendFile>(values_path());
    values_size = static_cast<int64_t>(fs::file_size(values_path()));
  }

  void flush() {
    if (pending.empty()) return;
    lines->append(pending);
    pending.clear();
  }

  void begin(const Recording::Entry& entry) {
    open();
    pending += cat("{\"event\": ", entry.event, ", \"mode\": ", json_string(entry.mode), ", \"epoch\": ", entry.epoch,
                   ", \"iteration\": ", entry.iteration, ", \"batch\": ", entry.batch, ", \"values\": [");
  }
  void end() {
    pending += "]}\n";
    if (pending.size() >= kBuffer) flush();
  }

  void value(std::string_view field, std::string_view dtype, const std::string& shape, const void* data,
             std::size_t size, std::string_view text) {
    if (pending.back() != '[') pending += ", ";
    pending += cat("[", json_string(field), ", ", json_string(dtype), ", ", shape, ", \"", digest(data, size), "\", ",
                   json_string(text));
    if (keep_whole) {
      pending += cat(", ", values_size);
      values->append({static_cast<const char*>(data), size});
      values_size += static_cast<int64_t>(size);
    }
    pending += "]";
  }
  void tensor(std::string_view field, const at::Tensor& tensor) {
    if (!tensor.defined()) return value(field, "undefined", "[]", "", 0, "undefined");
    const at::Tensor dense = tensor.layout() == at::kStrided ? tensor : tensor.detach().to_dense();
    const at::Tensor whole = dense.detach().resolve_conj().resolve_neg().cpu().contiguous();
    value(field, dtype_text(whole.scalar_type()), shape_text(whole.sizes()), whole.const_data_ptr(),
          static_cast<std::size_t>(whole.nbytes()), few_numbers(whole));
  }
  void text(std::string_view field, std::string_view text) {
    value(field, kText, cat("[", text.size(), "]"), text.data(), text.size(), text.size() <= 80 ? text : "");
  }
};

RecordingWriter::RecordingWriter(std::string base, std::string recorder, double tolerance, bool keep_whole)
    : impl_(std::make_unique<Impl>()) {
  impl_->base = std::move(base);
  impl_->recorder = std::move(recorder);
  impl_->tolerance = tolerance;
  impl_->keep_whole = keep_whole;
}
RecordingWriter::~RecordingWriter() = default;

void RecordingWriter::add(const Recording::Entry& entry, const Fields& values) {
  impl_->begin(entry);
  for (const auto& [field, value] : values.entries()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      impl_->tensor(field, *tensor);
    } else if (const auto* number = std::get_if<double>(&value)) {
      impl_->value(field, "float64", "[]", number, sizeof *number, number_text(*number));
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      impl_->value(field, "int64", "[]", integer, sizeof *integer, std::to_string(*integer));
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      for (std::size_t i = 0; i < texts->size(); ++i) impl_->text(cat(field, "/", i), (*texts)[i]);
    } else {
      const auto& tensors = std::get<std::vector<at::Tensor>>(value);
      for (std::size_t i = 0; i < tensors.size(); ++i) impl_->tensor(cat(field, "/", i), tensors[i]);
    }
  }
  impl_->end();
}

void RecordingWriter::add(const Recording::Entry& entry, const State& values) {
  impl_->begin(entry);
  for (const State::Leaf& leaf : values.leaves()) impl_->tensor(leaf.path, leaf.value);
  impl_->end();
}

void RecordingWriter::flush() { impl_->flush(); }

void RecordingWriter::cut(int64_t first_dropped) {
  impl_->flush();
  impl_->lines.reset();
  impl_->values.reset();
  impl_->fresh = false;
  std::error_code problem;
  if (!fs::exists(impl_->path(), problem)) return;
  const int64_t place = cut_place(impl_->path(), first_dropped);
  fs::resize_file(impl_->path(), static_cast<uintmax_t>(place), problem);
  if (problem) throw Error(cat("cannot shorten ", impl_->path(), ": ", problem.message()));
}

void RecordingWriter::clear() {
  impl_->pending.clear();
  impl_->lines.reset();
  impl_->values.reset();
  impl_->fresh = true;
  std::error_code problem;
  for (const std::string& path : {impl_->path(), impl_->values_path()}) {
    fs::remove(path, problem);
    if (problem) throw Error(cat("cannot remove ", path, ": ", problem.message()));
  }
}

namespace {

[[noreturn]] void fail(const std::string& path, std::size_t line, std::string_view what) {
  throw Error(cat(path, ":", line, ": this is no recording: ", what));
}

const JsonValue& member(const JsonValue& object, const char* name) {
  const JsonValue* found = object.member(name);
  if (found == nullptr) throw Error(cat("there is no \"", name, "\""));
  return *found;
}
template <class T>
T scalar(const JsonValue& value, const char* what) {
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* whole = std::get_if<int64_t>(&value.scalar)) return static_cast<double>(*whole);
    if (const auto* whole = std::get_if<uint64_t>(&value.scalar)) return static_cast<double>(*whole);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    const auto* whole = std::get_if<uint64_t>(&value.scalar);
    if (whole != nullptr && *whole <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return static_cast<int64_t>(*whole);
  }
  const T* found = value.kind == JsonValue::Kind::scalar ? std::get_if<T>(&value.scalar) : nullptr;
  if (found == nullptr) throw Error(cat("the ", what, " has another type"));
  return *found;
}

Recording::Value read_value(const JsonValue& value) {
  if (value.items.size() < 5 || value.items.size() > 6) throw Error("a value has another number of parts");
  Recording::Value result;
  result.field = scalar<std::string>(value.items[0], "field");
  result.dtype = scalar<std::string>(value.items[1], "dtype");
  for (const JsonValue& size : value.items[2].items) result.shape.push_back(scalar<int64_t>(size, "shape"));
  result.digest = scalar<std::string>(value.items[3], "digest");
  result.text = scalar<std::string>(value.items[4], "text");
  if (value.items.size() == 6) result.stored_at = scalar<int64_t>(value.items[5], "place");
  return result;
}

Recording::Entry read_entry(const JsonValue& line) {
  Recording::Entry entry;
  entry.event = scalar<int64_t>(member(line, "event"), "event");
  entry.mode = scalar<std::string>(member(line, "mode"), "mode");
  entry.epoch = scalar<int64_t>(member(line, "epoch"), "epoch");
  entry.iteration = scalar<int64_t>(member(line, "iteration"), "iteration");
  entry.batch = scalar<int64_t>(member(line, "batch"), "batch");
  for (const JsonValue& value : member(line, "values").items) entry.values.push_back(read_value(value));
  return entry;
}

constexpr int kDepth = 6;

}  // namespace

Recording read_recording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(cat("cannot read ", path, ": ", system_message(errno)));
  Recording recording;
  recording.path = path;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line) && !file.eof(); ++number) {
    try {
      const JsonValue value = read_json(line, kDepth);
      if (number == 1) {
        recording.recorder = scalar<std::string>(member(value, "recorder"), "recorder");
        recording.tolerance = scalar<double>(member(value, "tolerance"), "tolerance");
      } else {
        recording.entries.push_back(read_entry(value));
      }
    } catch (const Error& error) {
      fail(path, number, error.what());
    }
  }
  if (recording.recorder.empty()) fail(path, 1, "it does not begin with a recorder");
  return recording;
}

at::Tensor Recording::whole(const Value& value) const {
  static constexpr at::ScalarType kTypes[] = {at::kByte, at::kChar,  at::kShort,  at::kInt,      at::kLong,
                                              at::kHalf, at::kFloat, at::kDouble, at::kBFloat16, at::kBool};
  const std::string file_path = fs::path(path).replace_extension(".values").string();
  if (value.stored_at < 0) throw Error(cat(path, " has digests alone: record with VALUES: whole"));
  at::ScalarType dtype = at::kByte;
  bool known = value.dtype == kText;
  for (const at::ScalarType type : kTypes) {
    if (dtype_text(type) != value.dtype) continue;
    dtype = type;
    known = true;
  }
  if (!known) throw Error(cat(path, ": ", value.field, " is ", value.dtype, ", which is not known"));
  at::Tensor tensor = at::empty(value.shape, at::TensorOptions().dtype(dtype));
  const auto size = static_cast<std::streamsize>(tensor.nbytes());
  std::ifstream file(file_path, std::ios::binary);
  file.seekg(value.stored_at);
  file.read(static_cast<char*>(tensor.mutable_data_ptr()), size);
  if (!file) throw Error(cat("cannot read ", size, " bytes at ", value.stored_at, " of ", file_path));
  if (digest(tensor.const_data_ptr(), static_cast<std::size_t>(size)) != value.digest)
    throw Error(cat(file_path, ": the bytes of ", value.field, " are not those that were recorded"));
  return tensor;
}

}  // namespace gantry
