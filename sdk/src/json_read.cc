#include "json_read.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "gantry/error.h"
#include "gantry/text.h"
#include "message.h"

namespace gantry {
namespace {

using Json = nlohmann::json;

class Reader final : public nlohmann::json_sax<Json> {
 public:
  Reader(int max_depth, JsonEvents& events) : max_depth_(max_depth), events_(events) {}

  bool null() override { return scalar({}); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(uint64_t{value}); }
  bool number_float(number_float_t value, const string_t&) override { return scalar(double{value}); }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t&) override { throw Error("binary data in JSON"); }

  bool start_object(std::size_t) override {
    enter();
    events_.begin_object();
    return true;
  }
  bool end_object() override {
    leave();
    events_.end_object();
    return true;
  }
  bool start_array(std::size_t) override {
    enter();
    events_.begin_array();
    return true;
  }
  bool end_array() override {
    leave();
    events_.end_array();
    return true;
  }
  bool key(string_t& name) override {
    if (!names_.back().insert(name).second) throw Error(cat(quoted_for_message(name), " is there twice"));
    events_.key(std::move(name));
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw Error(cat("invalid JSON at byte ", position));
  }

 private:
  bool scalar(JsonScalar value) {
    events_.scalar(std::move(value));
    return true;
  }
  void enter() {
    if (static_cast<int>(names_.size()) == max_depth_) {
      throw Error(cat("JSON nested more than ", max_depth_, " deep, the most allowed"));
    }
    names_.emplace_back();
  }
  void leave() { names_.pop_back(); }

  const int max_depth_;
  JsonEvents& events_;
  std::vector<std::unordered_set<std::string>> names_;  // of the objects and arrays that are open
};

class TreeBuilder final : public JsonEvents {
 public:
  void begin_object() override { open(JsonValue::Kind::object); }
  void end_object() override { close(); }
  void begin_array() override { open(JsonValue::Kind::array); }
  void end_array() override { close(); }
  void key(std::string name) override { open_.back().name = std::move(name); }
  void scalar(JsonScalar value) override { add({JsonValue::Kind::scalar, std::move(value), {}, {}}); }
  JsonValue result() && { return std::move(root_); }

 private:
  struct Open {
    JsonValue value;
    std::string name;  // of the member that comes next
  };
  void open(JsonValue::Kind kind) { open_.push_back({{kind, {}, {}, {}}, {}}); }
  void close() {
    JsonValue value = std::move(open_.back().value);
    open_.pop_back();
    add(std::move(value));
  }
  void add(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Open& parent = open_.back(); parent.value.kind == JsonValue::Kind::object) {
      parent.value.members.emplace_back(std::move(parent.name), std::move(value));
    } else {
      parent.value.items.push_back(std::move(value));
    }
  }

  std::vector<Open> open_;
  JsonValue root_;
};

}  // namespace

void read_json(std::string_view text, int max_depth, JsonEvents& events) {
  // The parser takes a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw Error(cat("invalid JSON at byte ", zero + 1));
  }
  Reader reader(max_depth, events);
  Json::sax_parse(text.data(), text.data() + text.size(), &reader);
}

JsonValue read_json(std::string_view text, int max_depth) {
  TreeBuilder builder;
  read_json(text, max_depth, builder);
  return std::move(builder).result();
}

const JsonValue* JsonValue::member(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string json_scalar_text(const JsonScalar& scalar) {
  struct Text {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(uint64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return number_text(value); }
    std::string operator()(const std::string& value) const { return "the text " + quoted_for_message(value); }
  };
  return std::visit(Text(), scalar);
}

}  // namespace gantry
