#include <c10/core/ScalarType.h>

#include <algorithm>
#include <stdexcept>

#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/json.h"
#include "gantry/safetensors.h"
#include "gantry/tensor_text.h"
#include "gantry/text.h"
#include "message.h"
#include "safetensors_format.h"
#include "xxh3.h"

namespace gantry {
namespace {

struct Item {
  const std::string* name;
  const at::Tensor* tensor;
  std::size_t element_size;
};

/// Checked, in the file's order: as long as larger elements come first, every tensor is aligned to its elements.
std::vector<Item> in_file_order(const std::string& path,
                                const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::vector<Item> items;
  items.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    if (const std::string defect = safetensors_name_defect(name); !defect.empty()) {
      throw Error(cat("cannot write ", path, ": the name of tensor ", items.size() + 1, " ", defect));
    }
    const auto refuse = [&](const std::string& reason) {
      throw Error(cat("cannot write ", path, ": ", quoted_for_message(name), " ", reason));
    };
    if (!tensor.defined()) refuse("is an undefined tensor");
    if (tensor.layout() != at::kStrided) refuse("is a sparse tensor: the format holds dense ones alone");
    if (tensor.is_meta()) refuse("is on the meta device, it has no values");
    if (safetensors_dtype(tensor.scalar_type()).empty()) {
      refuse(cat("is ", dtype_text(tensor.scalar_type()),
                 ", which the format does not know; known: ", safetensors_dtypes()));
    }
    items.push_back({&name, &tensor, c10::elementSize(tensor.scalar_type())});
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.element_size != b.element_size ? a.element_size > b.element_size : *a.name < *b.name;
  });
  std::vector<std::string_view> names;
  for (const Item& item : items) names.push_back(*item.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    throw std::logic_error(cat("cannot write ", path, ": two tensors are named '", *twice, "'"));
  }
  return items;
}

std::string metadata_text(const std::string& path, const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::vector<std::string> keys, members;
  for (const auto& [key, value] : metadata) {
    keys.push_back(json_string(key));
    members.push_back(cat(keys.back(), ":", json_string(value)));
  }
  std::sort(keys.begin(), keys.end());
  if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end()) {
    throw std::logic_error(cat("cannot write ", path, ": the metadata have ", *twice, " twice"));
  }
  return cat(json_string(kSafetensorsMetadata), ":{", join(members, ","), "}");
}

/// The file's begin, its length included; the tensors' bytes follow.
std::string header_text(const std::string& path, const std::vector<Item>& items,
                        const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::vector<std::string> members;
  if (!metadata.empty()) members.push_back(metadata_text(path, metadata));
  std::size_t begin = 0;
  for (const Item& item : items) {
    const std::size_t end = begin + static_cast<std::size_t>(item.tensor->numel()) * item.element_size;
    std::string shape;
    for (const int64_t size : item.tensor->sizes()) shape += (shape.empty() ? "" : ",") + std::to_string(size);
    members.push_back(json_string(*item.name) + ":{\"dtype\":\"" +
                      std::string(safetensors_dtype(item.tensor->scalar_type())) + "\",\"shape\":[" + shape +
                      "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}");
    begin = end;
  }
  std::string json = "{" + join(members, ",") + "}";
  json.append((8 - json.size() % 8) % 8, ' ');
  if (static_cast<int64_t>(json.size()) > kSafetensorsMaxHeader) {
    throw Error(cat("cannot write ", path, ": the names of its ", items.size(), " tensors need a header of ",
                    json.size(), " bytes, more than ", kSafetensorsMaxHeader, ", the most allowed"));
  }
  std::string text;
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(json.size() >> shift & 0xff);
  return text + json;
}

}  // namespace

WrittenFile write_safetensors(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                              const std::vector<std::pair<std::string, std::string>>& metadata) {
  const std::vector<Item> items = in_file_order(path, tensors);
  const std::string header = header_text(path, items, metadata);
  WrittenFile result;
  result.size = static_cast<int64_t>(header.size());
  for (const Item& item : items) result.size += item.tensor->numel() * static_cast<int64_t>(item.element_size);

  OutputFile file(path, result.size);
  Xxh3 hash;
  const auto append = [&](const char* data, std::size_t size) {
    constexpr std::size_t kPiece = std::size_t{1} << 20;  // hashed and written while it is in the cache
    for (std::size_t done = 0; done < size; done += kPiece) {
      const std::size_t piece = std::min(kPiece, size - done);
      hash.update(data + done, piece);
      file.write(data + done, piece);
    }
  };
  append(header.data(), header.size());
  for (const Item& item : items) {
    const at::Tensor values = item.tensor->detach().resolve_conj().resolve_neg().cpu().contiguous();
    append(static_cast<const char*>(values.const_data_ptr()),
           static_cast<std::size_t>(values.numel()) * item.element_size);
  }
  file.finish();
  result.xxh3 = hash.hex();
  return result;
}

}  // namespace gantry
