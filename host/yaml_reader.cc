#include "host/yaml_reader.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gantry/json.h"
#include "gantry/text.h"

namespace gantry::host {
namespace {

constexpr std::size_t kMaxBytes = 10'000'000;
constexpr std::size_t kMaxDepth = 100;
// Aliases make a few lines stand for billions of values. Their sizes are added up at every use, before
// anything walks through the values.
constexpr int64_t kMaxValues = 100'000;

/// Builds a Config from the parser's events.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const std::string& file) : file_(file) {}

  Config result() && { return std::move(root_); }
  bool any() const { return documents_ > 0; }
  const SourceLocation& latest() const { return latest_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      fail(mark,
           "the document above has ended, and more follows: a configuration is one YAML document; check the "
           "indentation of this line, or remove the '---'");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string& name) override { anchor_name_ = name; }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) fail(mark, "a key is missing or null; keys are text");
    add(Config::null(place(mark)), anchor, 1);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool is_text = is_tagged_text(mark, tag);
    if (expects_key()) return add_key(mark, text, tag == "?");
    add(Config::scalar(text, place(mark), is_text || tag == "!"), anchor, 1);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t id) override {
    if (expects_key()) fail(mark, "an alias cannot be a key");
    const auto anchored = anchors_.find(id);
    if (anchored == anchors_.end()) fail(mark, "this alias stands inside the value that it names");
    last_alias_ = &anchored->second;
    add(anchored->second.value, 0, anchored->second.values);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, false);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, true);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Anchored {
    std::string name;
    Config value;
    int64_t values;
  };
  struct Frame {
    SourceLocation where;
    bool is_map;
    YAML::anchor_t anchor;
    std::string anchor_name;
    int64_t values = 1;
    std::vector<Config> items;
    std::vector<Config::Entry> entries;
    bool key_is_open = false;  // the last entry has no value yet
    std::unordered_map<std::string, int> key_lines;
  };

  SourceLocation place(const YAML::Mark& mark) { return latest_ = {file_, mark.line + 1, mark.column + 1}; }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) {
    throw ConfigError(place(mark), message);
  }

  bool expects_key() const { return !frames_.empty() && frames_.back().is_map && !frames_.back().key_is_open; }

  /// Whether a scalar is tagged as text, the one tag that is of use: `!!str 1`.
  bool is_tagged_text(const YAML::Mark& mark, const std::string& tag) {
    if (tag == "tag:yaml.org,2002:str") return true;
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(mark, cat("the tag '", tag, "' is not supported: remove it (only !!str on a scalar is)"));
    return false;
  }

  void add_key(const YAML::Mark& mark, const std::string& key, bool plain) {
    if (plain && key == "<<")
      fail(mark, "merge keys (<<) are not supported: use an alias for a whole value, or _BASE for a whole file");
    Frame& map = frames_.back();
    const auto [known, is_new] = map.key_lines.emplace(key, mark.line + 1);
    if (!is_new) fail(mark, cat("duplicate key '", key, "': it is already given in line ", known->second));
    map.entries.push_back({key, place(mark), Config()});
    map.key_is_open = true;
  }

  void add(Config value, YAML::anchor_t anchor, int64_t values) {
    if (anchor != 0) anchors_[anchor] = {anchor_name_, value, values};
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& parent = frames_.back();
    parent.values += values;
    if (parent.values > kMaxValues) fail_size(parent.where);
    if (parent.is_map) {
      parent.entries.back().value = std::move(value);
      parent.key_is_open = false;
    } else {
      parent.items.push_back(std::move(value));
    }
  }

  [[noreturn]] void fail_size(const SourceLocation& collection) const {
    if (last_alias_ == nullptr) throw ConfigError(collection, cat("more than ", kMaxValues, " values in one place"));
    throw ConfigError(last_alias_->value.where(), cat("repeating the value anchored here as '&", last_alias_->name,
                                                      "' through aliases makes more than ", kMaxValues,
                                                      " values (in what begins in line ", collection.line, ")"));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, bool is_map) {
    if (is_tagged_text(mark, tag)) fail(mark, "the tag !!str stands before a map or a list");
    if (expects_key()) fail(mark, "a map or a list cannot be a key");
    if (frames_.size() >= kMaxDepth) fail(mark, cat("nested more than ", kMaxDepth, " levels deep"));
    Frame& frame = frames_.emplace_back();
    frame.where = place(mark);
    frame.is_map = is_map;
    frame.anchor = anchor;
    if (anchor != 0) frame.anchor_name = anchor_name_;
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    anchor_name_ = frame.anchor_name;
    Config value = frame.is_map ? Config::map(std::move(frame.entries), frame.where)
                                : Config::list(std::move(frame.items), frame.where);
    add(std::move(value), frame.anchor, frame.values);
  }

  const std::string& file_;
  SourceLocation latest_{file_, 1, 1};
  int documents_ = 0;
  std::string anchor_name_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  const Anchored* last_alias_ = nullptr;
  Config root_;
};

void check_characters(std::string_view text, const std::string& name) {
  int line = 1;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const unsigned char c = static_cast<unsigned char>(text[0]);
    const SourceLocation where{name, line, 0};
    if (length == 0) throw ConfigError(where, "this line holds bytes that are no UTF-8 text");
    if (c == 0) throw ConfigError(where, "this line holds a NUL byte: not a text file");
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f)
      throw ConfigError(where, cat("this line holds a control character (code ", int{c}, ")"));
    if (c == '\n') ++line;
    text.remove_prefix(length);
  }
}

}  // namespace

Config read_yaml_text(std::string_view text, const std::string& name) {
  const SourceLocation start{name, 1, 1};
  if (text.size() > kMaxBytes)
    throw ConfigError(start, cat("the file has more than ", kMaxBytes, " bytes: not a configuration"));
  check_characters(text, name);

  Builder builder(name);
  try {
    // The document's end is spelt out: without it yaml-cpp takes a quote that is never closed for closed.
    std::istringstream stream(cat(text, text.ends_with('\n') ? "" : "\n", "...\n"));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    if (e.msg == YAML::ErrorMsg::DOC_IN_SCALAR || e.msg == YAML::ErrorMsg::EOF_IN_SCALAR)
      throw ConfigError(builder.latest(), "not valid YAML: a quote that opens here or just below is never closed");
    throw ConfigError(
        {name, std::max(e.mark.line, 0) + 1, std::max(e.mark.column, 0) + 1},
        cat("not valid YAML: ", e.msg, "; check indentation, colons, quotes and brackets here and above"));
  }
  const bool any = builder.any();
  Config config = std::move(builder).result();
  if (!any || config.is_null()) throw ConfigError(start, "the file is empty: it holds no configuration");
  if (config.type() != Config::Type::map)
    throw ConfigError(config.where(), cat("expected 'KEY: value' at the top level, found ", config.describe()));
  return config;
}

Config read_yaml_file(const std::string& path) {
  const SourceLocation whole_file{path, 0, 0};
  if (std::error_code error; std::filesystem::is_directory(path, error))
    throw ConfigError(whole_file, "this is a directory, not a configuration file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(whole_file, cat("cannot read the file: ", std::strerror(errno)));
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) throw ConfigError(whole_file, "cannot read the file");
  return read_yaml_text(text, path);
}

}  // namespace gantry::host
