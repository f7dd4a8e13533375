#include "host/plugin_catalogue.h"

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "gantry/error.h"
#include "gantry/text.h"
#include "host/commands.h"
#include "host/search_path.h"

namespace gantry::host {
namespace {

constexpr std::size_t kMaxHintedFiles = 5;

/// What dlerror said, out of the sentence that Boost puts around it.
std::string loader_message(std::string_view text) {
  constexpr std::string_view begin = "(dlerror system message: ";
  const std::size_t at = text.find(begin);
  const std::size_t end = text.rfind("): ");
  if (at == std::string_view::npos || end == std::string_view::npos || end < at) return std::string(text);
  return std::string(text.substr(at + begin.size(), end - at - begin.size()));
}

/// An exception of a static object cannot pass through the dynamic loader: it ends the program. This gives the
/// program's last word: whose it was.
class LoadingScope {
 public:
  explicit LoadingScope(const std::string& path) : before_(std::set_terminate(&blame)) { loading_ = path.c_str(); }
  ~LoadingScope() { std::set_terminate(before_); }

 private:
  [[noreturn]] static void blame() {
    const std::string cause = std::current_exception() ? current_exception_message() : "it called std::terminate";
    std::fprintf(stderr,
                 "error: plugin %s ended the program while it was being loaded: %s\n"
                 "  fix    nothing may throw in a plugin's static objects: build them when they are first needed\n",
                 loading_, cause.c_str());
    std::_Exit(kExitConfigError);
  }
  inline static const char* loading_ = nullptr;  // a terminate handler has no arguments
  std::terminate_handler before_;
};

const PluginInfo* load_library(const std::string& path) {
  const LoadingScope scope(path);
  // Never closed and never destroyed: exceptions, type information and thread-local data of a plugin may
  // outlive everything that the host knows of, and LibTorch keeps the library mapped anyway.
  static auto& libraries = *new std::vector<boost::dll::shared_library>;
  try {
    using boost::dll::load_mode::type;
    boost::dll::shared_library& library = libraries.emplace_back();
    library.load(path, type::rtld_now | type::rtld_local);
    if (!library.has(GANTRY_PLUGIN_ENTRY)) throw Error("it does not export " GANTRY_PLUGIN_ENTRY);
    return library.get<const PluginInfo*()>(GANTRY_PLUGIN_ENTRY)();
  } catch (const boost::system::system_error& error) {
    throw Error(loader_message(error.what()));
  }
}

/// The entries behind a plugin's function, once they are known to be what its notes say.
std::vector<const ComponentEntry*> read_entries(const PluginInfo* info, const PluginNote& note) {
  if (info == nullptr || info->struct_size < sizeof(PluginInfo) || info->note == nullptr)
    throw Error("its description is incomplete");
  if (note.text != info->note) throw Error("its note was changed after it was built");
  std::vector<const ComponentEntry*> entries;
  for (auto it = info->begin; it != info->end; ++it) {
    const ComponentEntry* entry = *it;
    if (entry == nullptr || entry->struct_size < sizeof(ComponentEntry)) throw Error("its description is incomplete");
    const bool noted = std::any_of(note.components.begin(), note.components.end(), [&](const ComponentNote& c) {
      return c.kind == entry->kind && c.name == entry->name && c.kind_abi == entry->kind_abi;
    });
    if (!noted) throw Error(cat("it provides ", entry->kind, " '", entry->name, "', which its notes do not mention"));
    entries.push_back(entry);
  }
  if (entries.size() != note.components.size())
    throw Error(cat("its notes promise ", note.components.size(), " components, it provides ", entries.size()));
  return entries;
}

}  // namespace

PluginCatalogue::PluginCatalogue(PluginIndex index, Logger logger)
    : index_(std::move(index)), logger_(std::move(logger)) {}

PluginCatalogue::PluginCatalogue(const std::vector<std::string>& plugin_dirs, Logger logger)
    : PluginCatalogue(PluginIndex(search_path(plugin_dirs, Config())), std::move(logger)) {}

const ComponentInfo* PluginCatalogue::find(const std::string& kind, const std::string& name, const std::string& pinned,
                                           const SourceLocation& asked_by) {
  const Wanted wanted{kind, name, asked_by};
  const PluginFile* file = pinned.empty() ? choose(wanted) : pin(wanted, pinned);
  if (file == nullptr) return nullptr;
  std::unique_ptr<ComponentInfo>& component = components_[{kind, name, file->path}];
  if (component == nullptr) component = make(wanted, *file);
  return component.get();
}

const PluginFile* PluginCatalogue::choose(const Wanted& wanted) {
  const std::vector<const PluginFile*> files = index_.providers(wanted.kind, wanted.name);
  if (files.empty()) return nullptr;
  const PluginFile* first = files.front();
  const auto line = [](const PluginFile& file) {
    return cat(file.path, " (", file.title(), file.differences.empty() ? "" : "; ", differences_text(file.differences),
               ")");
  };
  std::string others;
  bool ambiguous = false;
  for (const PluginFile* file : files) {
    if (file == first) continue;
    ambiguous = ambiguous || !is_copy(*first, *file);
    others += "\n  and    " + line(*file);
  }
  if (ambiguous)
    throw ConfigError(wanted.asked_by,
                      cat("two plugins provide ", wanted.kind, " '", wanted.name, "'\n  file   ", line(*first), others,
                          "\n  fix    remove one of them, or name the one to use: PLUGIN: ", first->path));
  if (files.size() > 1 && warned_.insert(first->path).second)
    logger_.warn(cat("copies of one plugin were found; the first is used\n  file   ", first->path, others));
  return first;
}

const PluginFile* PluginCatalogue::pin(const Wanted& wanted, const std::string& path) {
  PluginFile file = read_plugin_file(path);
  const auto same = [&](const PluginFile& other) { return other.inode == file.inode && other.device == file.device; };
  const PluginFile* found = nullptr;
  for (const PluginFile& known : index_.files())
    if (known.note && same(known)) found = &known;
  for (const PluginFile& known : pinned_)
    if (known.note && same(known)) found = &known;
  if (found == nullptr) found = &pinned_.emplace_back(std::move(file));
  if (!found->note) refuse(wanted, *found, {{"reason", found->skipped}});
  if (found->component(wanted.kind, wanted.name) == nullptr)
    refuse(wanted, *found, {{"reason", "it provides no such component; it provides " + found->provides()}});
  return found;
}

void PluginCatalogue::refuse(const Wanted& wanted, const PluginFile& file, const std::vector<Difference>& why) const {
  std::size_t width = 6;
  for (const Difference& difference : why) width = std::max(width, difference.field.size());
  const auto line = [width](std::string label, const std::string& value) {
    label.resize(width, ' ');
    return cat("\n  ", label, "  ", value);
  };
  std::string message = cat("cannot load plugin for ", wanted.kind, " '", wanted.name, "'");
  message += line("file", file.note ? cat(file.path, " (", file.title(), ")") : file.path);
  for (const Difference& difference : why) message += line(difference.field, difference.verdict);
  const bool rebuild = file.note && why.front().field != "reason";
  message += line("fix", rebuild ? cat("rebuild the plugin: cmake -S . -B build -DCMAKE_PREFIX_PATH=", program_prefix(),
                                       " && cmake --build build")
                                 : cat("see: gantry plugins inspect ", file.path));
  throw ConfigError(wanted.asked_by, message);
}

std::unique_ptr<ComponentInfo> PluginCatalogue::make(const Wanted& wanted, const PluginFile& file) {
  std::vector<Difference> differences = file.differences;
  if (auto difference = compare_kind(*file.component(wanted.kind, wanted.name)))
    differences.push_back(std::move(*difference));
  if (!differences.empty()) refuse(wanted, file, differences);
  const Loaded& loaded = load(file);
  if (!loaded.failure.empty()) refuse(wanted, file, {{"reason", loaded.failure}});

  const auto entry = std::find_if(loaded.entries.begin(), loaded.entries.end(), [&](const ComponentEntry* e) {
    return wanted.kind == e->kind && wanted.name == e->name;
  });
  if (entry == loaded.entries.end()) refuse(wanted, file, {{"reason", "it does not provide this component"}});
  auto info = std::make_unique<ComponentInfo>();
  info->kind = wanted.kind;
  info->name = wanted.name;
  info->summary = (*entry)->summary == nullptr ? "" : (*entry)->summary;
  info->plugin = file.note->name;
  info->version = file.note->version;
  info->file = file.path;
  info->create = (*entry)->create;
  try {
    if ((*entry)->declare != nullptr) (*entry)->declare(info->parameters);
  } catch (...) {
    refuse(wanted, file, {{"reason", "declaring its parameters failed: " + current_exception_message()}});
  }
  return info;
}

const PluginCatalogue::Loaded& PluginCatalogue::load(const PluginFile& file) {
  const auto [it, is_new] = loaded_.try_emplace(file.path);
  Loaded& loaded = it->second;
  if (!is_new) return loaded;
  // Before loading, so that the last line of a log names a plugin that takes the process down.
  logger_.debug(cat("loading plugin ", file.path));
  try {
    loaded.entries = read_entries(load_library(file.path), *file.note);
  } catch (...) {
    loaded.failure = current_exception_message();
  }
  return loaded;
}

ComponentInfo PluginCatalogue::listed(const std::string& kind, const std::string& name) {
  try {
    return *find(kind, name, "", {"gantry list", 0, 0});
  } catch (const ConfigError&) {
    const PluginFile& file = *index_.providers(kind, name).front();
    return {kind,      name, "(cannot be used: see gantry plugins list)", file.note->name, file.note->version,
            file.path, {}};
  }
}

std::vector<std::string> PluginCatalogue::names(const std::string& kind) const { return index_.names(kind); }

std::string PluginCatalogue::hint(const std::string& kind, const std::string& name) const {
  std::vector<std::string> lines;
  for (const std::string& other : index_.kinds_of(name))
    if (other != kind) lines.push_back(cat("  '", name, "' is the name of a ", other));
  std::size_t unusable = 0;
  for (const PluginFile& file : index_.files()) {
    if (file.note && file.differences.empty()) continue;
    if (++unusable <= kMaxHintedFiles) lines.push_back(cat("  not used: ", file.path, ": ", index_.status(file)));
  }
  if (unusable > kMaxHintedFiles)
    lines.push_back(cat("  and ", unusable - kMaxHintedFiles, " more files that are not used: gantry plugins list"));
  if (index_.names("").empty()) lines.push_back("  no plugins were found in\n" + index_.directories_text());
  std::string text = join(lines, "\n");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace gantry::host
