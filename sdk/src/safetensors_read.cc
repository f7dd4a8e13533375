#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/safetensors.h"
#include "gantry/text.h"
#include "message.h"
#include "safetensors_format.h"
#include "safetensors_header.h"

namespace gantry {
namespace {

class Mapping final {
 public:
  explicit Mapping(const InputFile& file) : size_(static_cast<std::size_t>(file.size())) {
    address_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (address_ == MAP_FAILED) throw Error(cat("cannot map ", file.path(), ": ", system_message(errno)));
  }
  ~Mapping() { ::munmap(address_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const char* data() const { return static_cast<const char*>(address_); }

 private:
  void* address_;
  std::size_t size_;
};

int64_t little_endian(const char* bytes) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  // What is out of range is larger than any limit, and stays so.
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

}  // namespace

struct SafetensorsFile::Impl {
  std::string path;
  int64_t size = 0;
  std::shared_ptr<const Mapping> mapping;
  const char* data = nullptr;  // behind the header
  SafetensorsHeader header;
  std::vector<std::size_t> by_name;  // indices into the entries
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  const InputFile file(path);
  auto impl = std::make_shared<Impl>();
  impl->path = path;
  impl->size = file.size();
  if (file.size() < kSafetensorsLengthBytes) {
    throw Error(cat(path, ": it has ", bytes_text(file.size()), ", too few for a safetensors file"));
  }
  impl->mapping = std::make_shared<const Mapping>(file);
  const int64_t length = little_endian(impl->mapping->data());
  if (length > kSafetensorsMaxHeader) {
    throw Error(cat(path, ": its header should take ", length, " bytes, more than ", kSafetensorsMaxHeader,
                    ", the most allowed: it is no safetensors file, or a damaged one"));
  }
  if (length > file.size() - kSafetensorsLengthBytes) {
    throw Error(cat(path, ": its header should take ", length, " bytes from byte ", kSafetensorsLengthBytes,
                    " on, but the file has ", file.size(), ": it is truncated, or no safetensors file"));
  }
  const char* json = impl->mapping->data() + kSafetensorsLengthBytes;
  impl->data = json + length;
  try {
    impl->header = parse_safetensors_header({json, static_cast<std::size_t>(length)},
                                            file.size() - kSafetensorsLengthBytes - length);
  } catch (const Error& error) {
    throw Error(cat(path, ": ", error.what()));
  }
  const std::vector<Entry>& entries = impl->header.entries;
  impl->by_name.resize(entries.size());
  std::iota(impl->by_name.begin(), impl->by_name.end(), std::size_t{0});
  std::sort(impl->by_name.begin(), impl->by_name.end(),
            [&](std::size_t a, std::size_t b) { return entries[a].name < entries[b].name; });
  return SafetensorsFile(std::move(impl));
}

const std::string& SafetensorsFile::path() const { return impl_->path; }
int64_t SafetensorsFile::size() const { return impl_->size; }
const std::vector<SafetensorsFile::Entry>& SafetensorsFile::entries() const { return impl_->header.entries; }
const std::vector<std::pair<std::string, std::string>>& SafetensorsFile::metadata() const {
  return impl_->header.metadata;
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const std::vector<Entry>& entries = impl_->header.entries;
  const auto place = std::lower_bound(impl_->by_name.begin(), impl_->by_name.end(), name,
                                      [&](std::size_t i, std::string_view wanted) { return entries[i].name < wanted; });
  return place != impl_->by_name.end() && entries[*place].name == name ? &entries[*place] : nullptr;
}

at::Tensor SafetensorsFile::tensor(std::string_view name) const {
  const Entry* entry = find(name);
  if (entry == nullptr) throw Error(cat(impl_->path, ": there is no tensor ", quoted_for_message(name)));
  const char* data = impl_->data + entry->begin;
  const auto size = static_cast<std::size_t>(entry->end - entry->begin);
  const at::TensorOptions options = at::TensorOptions().dtype(entry->dtype).device(at::kCPU);
  // Complex numbers are pairs, but ATen loads each as a whole.
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % c10::elementSize(entry->dtype) == 0;
  if (size > 0 && aligned) {
    return at::from_blob(
        const_cast<char*>(data), entry->shape, [mapping = impl_->mapping](void*) {}, options);
  }
  at::Tensor copy = at::empty(entry->shape, options);
  if (size > 0) std::memcpy(copy.mutable_data_ptr(), data, size);
  return copy;
}

}  // namespace gantry
