#include "gantry/pretrained.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "config_files.h"
#include "files.h"
#include "gantry/checkpoint.h"
#include "gantry/file_system.h"
#include "gantry/log.h"
#include "gantry/torch.h"
#include "messages.h"

namespace {

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// body.weight [2, 3], body.bias [2], norm.mean [2] (a buffer), norm.count (int64); out.weight and out.tied are one.
struct Net : torch::nn::Module {
  Net() {
    body = register_module("body", torch::nn::Linear(3, 2));
    norm = register_module("norm", std::make_shared<torch::nn::Module>());
    norm->register_buffer("mean", at::zeros({2}));
    norm->register_buffer("count", at::zeros({}, at::kLong));
    out = register_module("out", std::make_shared<torch::nn::Module>());
    out->register_parameter("weight", at::ones({2, 2}));
    out->register_parameter("tied", out->named_parameters()["weight"]);
  }
  at::Tensor operator[](const std::string& name) const {
    for (const auto& item : named_parameters())
      if (item.key() == name) return item.value().detach();
    return named_buffers()[name];
  }
  std::map<std::string, at::Tensor> copies() const {
    std::map<std::string, at::Tensor> all;
    for (const auto& item : named_parameters()) all[item.key()] = item.value().detach().clone();
    for (const auto& item : named_buffers()) all[item.key()] = item.value().clone();
    return all;
  }
  torch::nn::Linear body{nullptr};
  std::shared_ptr<torch::nn::Module> norm, out;
};

Tensors fitting() {
  return {{"body.weight", at::arange(6, at::kFloat).view({2, 3})},
          {"body.bias", at::tensor({7.0f, 8.0f})},
          {"norm.mean", at::tensor({0.5f, 0.25f})},
          {"norm.count", at::tensor(int64_t{9}).squeeze()},
          {"out.weight", at::full({2, 2}, 3.0f)}};
}

Tensors without(Tensors tensors, const std::string& name) {
  std::erase_if(tensors, [&](const auto& item) { return item.first == name; });
  return tensors;
}
Tensors with(Tensors tensors, const std::string& name, const at::Tensor& tensor) {
  tensors = without(tensors, name);
  tensors.emplace_back(name, tensor);
  return tensors;
}
Tensors renamed(Tensors tensors, const std::string& beginning) {
  for (auto& item : tensors) item.first = beginning + item.first;
  return tensors;
}

struct Lines final : gantry::LogSink {
  bool enabled(gantry::LogLevel) const override { return true; }
  void write(gantry::LogLevel, std::string_view, std::string_view message) override { text += std::string(message); }
  void open_file(const std::string&) override {}
  std::string text;
};

struct Loading {
  TemporaryDirectory dir;
  Net net;
  std::shared_ptr<Lines> log = std::make_shared<Lines>();
  std::string path = dir / "w.safetensors";

  explicit Loading(const Tensors& tensors, const Metadata& metadata = {}) {
    gantry::write_safetensors(path, tensors, metadata);
  }

  /// `keys` in flow style: "STRICT: false".
  void load(const std::string& keys = "") {
    std::string text = "{PRETRAINED_MODEL: '" + path + "'";
    for (const char* other : {"STRICT: true", "IGNORE_KEYS: []", "NAME_MAP: []"})
      if (!contains(keys, std::string(other).substr(0, std::string(other).find(':'))))
        text += std::string(", ") + other;
    gantry::FileSystems files;
    gantry::load_pretrained(net, flow(text + (keys.empty() ? "" : ", " + keys) + "}", "job.yaml", 4), files,
                            gantry::Logger(log, ""));
  }
  /// That nothing was loaded is part of it.
  std::string refusal(const std::string& keys = "") {
    const auto before = net.copies();
    const std::string message = message_of<gantry::ConfigError>([&] { load(keys); });
    for (const auto& [name, tensor] : net.copies()) CHECK(tensor.equal(before.at(name)));
    return message;
  }
  void clear() {
    at::NoGradGuard no_grad;
    for (at::Tensor& tensor : net.parameters()) tensor.zero_();
  }
  void check_loaded(const std::string& name, const at::Tensor& expected) const {
    INFO(name);
    CHECK(net[name].equal(expected));
  }
};

std::string one_of(const std::string& message, const std::string& part) {
  return contains(message, part) ? "" : message;
}

}  // namespace

TEST_CASE("pretrained weights and buffers are loaded bit for bit") {
  Loading run(fitting());
  run.load();
  for (const auto& [name, tensor] : fitting()) run.check_loaded(name, tensor);
  run.check_loaded("out.tied", at::full({2, 2}, 3.0f));
  CHECK(run.log->text == "loaded 5 tensors from " + run.path);
}

TEST_CASE("all that does not fit is told at once and then nothing is loaded") {
  Tensors tensors = with(fitting(), "body.weight", at::zeros({2, 4}));
  tensors = with(without(tensors, "body.bias"), "body.bais", at::zeros({2}));
  Loading run(with(tensors, "extra", at::zeros({1})));
  const std::string message = run.refusal();
  CHECK(
      message.starts_with("job.yaml:4: PRETRAINED_MODEL " + run.path + " does not fit the model; nothing of it was "));
  CHECK(one_of(message, "the file's 'body.weight' is float32 [2, 4], the model's float32 [2, 3]").empty());
  CHECK(one_of(message, "the model has 'body.bias', the file has not; it has 'body.bais'").empty());
  CHECK(one_of(message, "the file has 'body.bais', the model has not; it has 'body.bias'").empty());
  CHECK(one_of(message, "the file has 'extra', the model has not").empty());
  CHECK(one_of(message, "STRICT: false").empty());
}

TEST_CASE("without STRICT what has no counterpart is left as it is and shapes must agree all the same") {
  Loading run(with(without(fitting(), "body.bias"), "extra", at::zeros({1})));
  const at::Tensor bias = run.net["body.bias"].clone();
  run.load("STRICT: false");
  run.check_loaded("body.bias", bias);
  run.check_loaded("body.weight", at::arange(6, at::kFloat).view({2, 3}));
  CHECK(one_of(run.log->text, "not in the file, left as initialised: body.bias; not in the model: extra").empty());

  Loading shapes(with(fitting(), "norm.mean", at::zeros({3})));
  CHECK(one_of(shapes.refusal("STRICT: false"), "'norm.mean' is float32 [3], the model's float32 [2]").empty());
}

TEST_CASE("a file that has nothing for the model is refused whatever STRICT says") {
  Loading run({{"other", at::zeros({2})}});
  CHECK(one_of(run.refusal("STRICT: false"), "no name of the file is one of the model's").empty());
  CHECK(one_of(run.refusal("STRICT: false, IGNORE_KEYS: [.]"), "The model has nothing; the file has nothing").empty());
}

TEST_CASE("names that IGNORE_KEYS finds are left out on either side") {
  Tensors tensors = with(with(fitting(), "out.weight", at::zeros({9, 9})), "extra.a", at::zeros({1}));
  Loading run(without(tensors, "norm.count"));
  const at::Tensor out = run.net["out.weight"].clone();
  run.load(R"(IGNORE_KEYS: ['^out\.', extra, count$])");
  run.check_loaded("out.weight", out);
  run.check_loaded("norm.mean", at::tensor({0.5f, 0.25f}));
  CHECK(one_of(run.log->text, "loaded 3 tensors").empty());
  CHECK(one_of(run.log->text, "4 left out by IGNORE_KEYS").empty());
}

TEST_CASE("NAME_MAP renames one entry after the other") {
  Loading run(renamed(fitting(), "module.net."));
  run.load(R"(NAME_MAP: [{FROM: '^module\.', TO: ''}, {FROM: '^net\.(.*)', TO: '$1'}])");
  run.check_loaded("body.weight", at::arange(6, at::kFloat).view({2, 3}));

  Loading twice(with(fitting(), "x.body.bias", at::zeros({2})));
  CHECK(one_of(twice.refusal(R"(NAME_MAP: [{FROM: '^x\.', TO: ''}])"),
               "NAME_MAP makes 'body.bias' of both 'body.bias' and 'x.body.bias'")
            .empty());
  Loading wrong(with(without(fitting(), "norm.mean"), "old.bias", at::zeros({3})));
  CHECK(one_of(wrong.refusal("NAME_MAP: [{FROM: old.bias, TO: norm.mean}]"),
               "the file's 'old.bias', by NAME_MAP 'norm.mean', is float32 [3], the model's float32 [2]")
            .empty());
  CHECK(one_of(wrong.refusal("NAME_MAP: [{FROM: '(', TO: ''}]"), "FROM: '(' is no regular expression").empty());
}

TEST_CASE("names that all have one more beginning get the NAME_MAP that takes it off") {
  Loading more(renamed(fitting(), "module."));
  CHECK(one_of(more.refusal(), R"(Write NAME_MAP: [{FROM: '^module\.', TO: ''}])").empty());
  more.load(R"(NAME_MAP: [{FROM: '^module\.', TO: ''}])");
  more.check_loaded("body.bias", at::tensor({7.0f, 8.0f}));

  struct Wrapped : torch::nn::Module {
    Wrapped() { register_module("net", std::make_shared<Net>()); }
  } wrapped;
  TemporaryDirectory dir;
  gantry::write_safetensors(dir / "w.safetensors", fitting());
  gantry::FileSystems files;
  const auto config = [&](const std::string& map) {
    return flow("{PRETRAINED_MODEL: '" + (dir / "w.safetensors") +
                "', STRICT: true, IGNORE_KEYS: [], NAME_MAP: " + map + "}");
  };
  const std::string message =
      message_of<gantry::ConfigError>([&] { gantry::load_pretrained(wrapped, config("[]"), files, gantry::Logger()); });
  CHECK(one_of(message, "Write NAME_MAP: [{FROM: '^', TO: 'net.'}]").empty());
  gantry::load_pretrained(wrapped, config("[{FROM: '^', TO: 'net.'}]"), files, gantry::Logger());
  CHECK(wrapped.named_parameters()["net.body.bias"].detach().equal(at::tensor({7.0f, 8.0f})));
}

TEST_CASE("pretrained weights of another dtype are converted") {
  Tensors tensors = fitting();
  for (auto& item : tensors)
    if (item.second.is_floating_point()) item.second = item.second.to(at::kBFloat16);
  Loading run(tensors);
  run.load();
  CHECK((run.net["body.weight"].scalar_type() == at::kFloat));
  run.check_loaded("body.weight", at::arange(6, at::kFloat).view({2, 3}));  // small whole numbers: exact in bfloat16
  Loading complex(with(fitting(), "norm.mean", at::zeros({2}, at::kComplexFloat)));
  CHECK(one_of(complex.refusal(), "half of each number would be lost").empty());
}

TEST_CASE("a tied tensor takes what any of its names has") {
  const at::Tensor value = at::full({2, 2}, -4.0f);
  Loading other(with(without(fitting(), "out.weight"), "out.tied", value));
  other.load();
  other.check_loaded("out.weight", value);
  Loading both(with(fitting(), "out.tied", at::full({2, 2}, 3.0f)));
  both.load();
  both.check_loaded("out.weight", at::full({2, 2}, 3.0f));
}

TEST_CASE("aliases in the metadata give a tensor its other names") {
  // Of a model that had tied what this one has not.
  for (const std::string key : {"alias:body.bias", "body.bias"}) {
    Loading run(without(fitting(), "body.bias"), {{"format", "pt"}, {key, "norm.mean"}});
    run.load();
    run.check_loaded("body.bias", at::tensor({0.5f, 0.25f}));
    run.check_loaded("norm.mean", at::tensor({0.5f, 0.25f}));
  }
}

TEST_CASE("a sharded model is loaded through its index or its folder") {
  Loading run(fitting());
  gantry::write_safetensors(run.dir / "a.safetensors", without(without(fitting(), "body.weight"), "out.weight"));
  gantry::write_safetensors(run.dir / "b.safetensors",
                            {{"body.weight", at::full({2, 3}, 5.0f)}, {"out.weight", at::full({2, 2}, 6.0f)}});
  const std::string index = run.dir / "model.safetensors.index.json";
  const std::string map = R"("norm.mean": "a.safetensors", "norm.count": "a.safetensors", "body.bias": "a.safetensors",
                             "out.weight": "b.safetensors")";
  put_bytes(index, R"({"metadata": {}, "weight_map": {)" + map + R"(, "body.weight": "b.safetensors"}})");
  for (const std::string& path : {index, index.substr(0, index.rfind('/'))}) {
    run.path = path;
    run.clear();
    run.load();
    run.check_loaded("body.weight", at::full({2, 3}, 5.0f));
    run.check_loaded("out.tied", at::full({2, 2}, 6.0f));
    run.check_loaded("body.bias", at::tensor({7.0f, 8.0f}));
  }
  struct Case {
    std::string json, part;
  };
  for (const Case& c :
       {Case{R"({"weight_map": {"x": "../b.safetensors"}})", "does not give the name of a file beside it"},
        Case{R"({"weight_map": {"x": 3}})", "does not give the name of a file beside it for 'x'"},
        Case{R"({"weight_map": {"x": "b.safetensors"}})", "b.safetensors should have 'x', and has not"},
        Case{R"({"weight_map": {"x": "c.safetensors"}})", "c.safetensors"},
        Case{R"({"maps": {}})", "it has no \"weight_map\""}, Case{"{", "model.safetensors.index.json"}}) {
    put_bytes(index, c.json);
    CHECK(one_of(run.refusal(), c.part) == "");
  }
}

TEST_CASE("a path without weights says what was looked for") {
  Loading run(fitting());
  const std::string folder = run.path.substr(0, run.path.rfind('/'));
  run.path = folder;
  CHECK(one_of(run.refusal(),
               "the folder has neither model.safetensors nor model.safetensors.index.json; it has "
               "w.safetensors: name the file")
            .empty());
  run.path = folder + "/none";
  CHECK(one_of(run.refusal(), "there is no such file or folder").empty());
  run.path = folder + "/junk.safetensors";
  put_bytes(run.path, "junk");
  CHECK(run.refusal().starts_with("job.yaml:4: PRETRAINED_MODEL cannot be loaded: " + run.path));
}

TEST_CASE("the model of a checkpoint is loaded from its folder and a damaged one is not") {
  Loading run(fitting());
  gantry::State state;
  for (const auto& [name, tensor] : fitting()) state.set("model/" + name, tensor);
  gantry::CheckpointStore store(run.dir / "checkpoints");
  gantry::CheckpointInfo info;
  info.phase = "epoch_done";
  run.path = store.save(state, info).path;
  run.load();
  run.check_loaded("norm.count", at::tensor(int64_t{9}).squeeze());
  std::string bytes = bytes_of(run.path + "/model.safetensors");
  bytes.back() ^= 1;
  put_bytes(run.path + "/model.safetensors", bytes);
  CHECK(one_of(run.refusal(), "model.safetensors is damaged").empty());
}
