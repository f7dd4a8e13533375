#include "tensors_report.h"

#include <c10/core/ScalarType.h>
#include <gantry/json.h>
#include <gantry/text.h>

#include <utility>
#include <vector>

#include "text_forms.h"

namespace {

using Entry = gantry::SafetensorsFile::Entry;

std::string dtype_name(const Entry& entry) { return c10::getDtypeNames(entry.dtype).first; }

std::string shape_text(const Entry& entry) {
  std::vector<std::string> sizes;
  for (const int64_t size : entry.shape) sizes.push_back(std::to_string(size));
  return "[" + gantry::join(sizes, ", ") + "]";
}

int64_t numbers_in(const Entry& entry) {
  int64_t product = 1;
  for (const int64_t size : entry.shape) product *= size;
  return product;
}

}  // namespace

int64_t numbers_in(const gantry::SafetensorsFile& file) {
  int64_t sum = 0;
  for (const Entry& entry : file.entries()) sum += numbers_in(entry);
  return sum;
}

std::string tensors_text(const gantry::SafetensorsFile& file) {
  std::string text = gantry::cat("file  ", file.path(), "\n");
  std::vector<Row> rows{{"name", "dtype", "shape", "bytes"}};
  for (const Entry& entry : file.entries())
    rows.push_back({printable(entry.name), dtype_name(entry), shape_text(entry), gantry::cat(entry.end - entry.begin)});
  if (rows.size() > 1) text += columns(rows, {false, false, false, true});
  text += gantry::cat("total  ", count(static_cast<int64_t>(file.entries().size()), "tensor"), ", ",
                      count(numbers_in(file), "number"), ", file of ", count(file.size(), "byte"), "\n");
  rows.clear();
  for (const auto& [key, value] : file.metadata()) rows.push_back({printable(key), printable(value)});
  if (!rows.empty()) text += "metadata\n" + columns(rows, {false, false});
  return text;
}

std::string tensors_json(const gantry::SafetensorsFile& file) {
  std::vector<std::string> tensors;
  for (const Entry& entry : file.entries())
    tensors.push_back(gantry::json_object({{"name", gantry::json_string(entry.name)},
                                           {"dtype", gantry::json_string(dtype_name(entry))},
                                           {"shape", shape_text(entry)},
                                           {"bytes", gantry::cat(entry.end - entry.begin)}}));
  return gantry::json_object({{"file", gantry::json_string(file.path())},
                              {"bytes", gantry::cat(file.size())},
                              {"numbers", gantry::cat(numbers_in(file))},
                              {"metadata", json_texts(file.metadata())},
                              {"tensors", gantry::json_array(tensors)}});
}
