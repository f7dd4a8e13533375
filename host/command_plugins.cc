#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "gantry/json.h"
#include "gantry/plugin_entry.h"
#include "gantry/text.h"
#include "host/arguments.h"
#include "host/commands.h"
#include "host/plugin_index.h"
#include "host/search_path.h"

namespace gantry::host {
namespace {

std::string file_json(const PluginFile& file, const std::string& status) {
  const PluginNote note = file.note.value_or(PluginNote());
  std::vector<std::string> components;
  for (const ComponentNote& component : note.components)
    components.push_back(json_object({{"kind", json_string(component.kind)},
                                      {"name", json_string(component.name)},
                                      {"abi", std::to_string(component.kind_abi)}}));
  return json_object({{"name", json_string(note.name)},
                      {"version", json_string(note.version)},
                      {"file", json_string(file.path)},
                      {"size", std::to_string(file.size)},
                      {"build_id", json_string(note.build_id)},
                      {"provides", json_array(components)},
                      {"status", json_string(status)}});
}

void print_fields(const PluginNote& note) {
  const auto row = [](const std::string& key, const std::string& plugin, const std::string& host, const char* verdict) {
    std::cout << "  " << std::left << std::setw(10) << key << "  " << std::setw(14) << plugin << "  " << std::setw(14)
              << host << verdict << '\n';
  };
  row("", "plugin", "host", "");
  for (const auto& [key, value] : note.fields) {
    if (key == "name" || key == "version") continue;
    const bool compared = std::count(std::begin(kComparedFields), std::end(kComparedFields), key) > 0;
    row(key, value, host_field(key), compared && value != host_field(key) ? "  differs" : "");
  }
}

void print_inspection(const PluginFile& file, const std::string& status) {
  std::cout << "file      " << file.path << " (" << file.size << " bytes)\n";
  if (file.note) {
    std::cout << "plugin    " << file.title() << "\nbuild-id  "
              << (file.note->build_id.empty() ? "none" : file.note->build_id) << "\nbuilt with\n";
    print_fields(*file.note);
    std::cout << "provides\n";
    for (const ComponentNote& component : file.note->components)
      std::cout << "  " << component.kind << ' ' << component.name << ", ABI " << component.kind_abi << " (host "
                << kind_abi(component.kind.c_str()) << ")\n";
  }
  std::cout << "status    " << status << '\n';
}

}  // namespace

int command_plugins_list(const std::vector<std::string>& words) {
  Arguments arguments("plugins list", "", "Lists every file that the search for plugins sees, and what becomes of it.");
  arguments.flag("json", "print a JSON array").plugin_dirs();
  if (!arguments.parse(words, 0, 0)) return kExitDone;
  const PluginIndex index(search_path(arguments.plugin_dir_values(), Config()));
  if (arguments.has("json")) {
    std::vector<std::string> items;
    for (const PluginFile& file : index.files()) items.push_back(file_json(file, index.status(file)));
    std::cout << json_array(items) << std::endl;
    return kExitDone;
  }
  for (const PluginFile& file : index.files()) {
    const std::string title = file.note ? file.title() : std::filesystem::path(file.path).filename().string();
    std::cout << title << "  " << index.status(file) << "\n  file      " << file.path << '\n';
    if (file.note) std::cout << "  provides  " << provides(*file.note) << '\n';
  }
  if (index.files().empty()) std::cout << "no plugins found; searched\n" << index.directories_text();
  return kExitDone;
}

int command_plugins_inspect(const std::vector<std::string>& words) {
  Arguments arguments("plugins inspect", "FILE",
                      "Shows what a plugin says about itself, without loading it, beside what this program needs.\n"
                      "Exit code 0 when it fits, 2 when it does not.");
  arguments.flag("json", "print one line of JSON");
  if (!arguments.parse(words, 1, 1)) return kExitDone;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(arguments.operands()[0], error);
  const PluginFile file = read_plugin_file(error ? arguments.operands()[0] : path.lexically_normal().string());
  const std::string status = PluginIndex({}).status(file);
  if (arguments.has("json")) {
    std::cout << file_json(file, status) << std::endl;
  } else {
    print_inspection(file, status);
  }
  return status == "ok" ? kExitDone : kExitConfigError;
}

}  // namespace gantry::host
