#include <gantry/torch.h>

#include <algorithm>

namespace {

/// Backbone, neck, head, loss: from "img" and "label" to "loss" and "logits".
class Classifier final : public gantry::Model {
 public:
  static void declare(gantry::Parameters& p) {
    p.optional<int64_t>("NUM_CLASSES")
        .at_least(1)
        .help("Size of the logits, of a linear head. This or HEAD is needed.");
    p.component<gantry::Module>("BACKBONE").help("From images to features.");
    p.optional_component<gantry::Module>("NECK").help("From the backbone's features to the head's.");
    p.optional_component<gantry::Module>("HEAD").help("From features to logits, in place of a linear head.");
    p.add<bool>("FREEZE_BN", false).help("Batch normalisation keeps its statistics, also in training.");
    p.component_or<gantry::Loss>("LOSS", "CrossEntropy").help("From logits and labels to the loss.");
    p.add<std::string>("INPUT_KEY", "img").help("What the batch calls the images.");
    p.add<std::string>("LABEL_KEY", "label").help("What the batch calls the labels, int64 in [0, NUM_CLASSES).");
    p.foreign("METRIC", {"*"}, "SOLVER.METRICS are computed over the whole of each evaluation");
    p.foreign("ACT_NAME", {"softmax"}, "the outputs are logits, whose order is that of their softmax");
  }

  Classifier(const gantry::Config& config, gantry::Context& context)
      : input_key_(config.get<std::string>("INPUT_KEY")),
        label_key_(config.get<std::string>("LABEL_KEY")),
        freeze_bn_(config.get<bool>("FREEZE_BN")) {
    backbone_ = context.build<gantry::Module>(config.get<gantry::Config>("BACKBONE"));
    if (config.has("NECK")) neck_ = context.build<gantry::Module>(config.get<gantry::Config>("NECK"));
    if (config.has("HEAD") == config.has("NUM_CLASSES"))
      throw config.error("HEAD", config.has("HEAD") ? "HEAD says how many classes there are: leave NUM_CLASSES out"
                                                    : "give NUM_CLASSES, for a linear head, or HEAD");
    if (config.has("HEAD")) {
      whole_head_ = context.build<gantry::Module>(config.get<gantry::Config>("HEAD"));
    } else {
      head_ = torch::nn::Linear(features_for_head(config), config.get<int64_t>("NUM_CLASSES"));
    }
    loss_ = context.build<gantry::Loss>(config.get<gantry::Config>("LOSS"));
    register_module("backbone", backbone_);
    if (neck_ != nullptr) register_module("neck", neck_);
    if (whole_head_ != nullptr)
      register_module("head", whole_head_);
    else
      register_module("head", head_);
    register_module("loss", loss_);
  }

  gantry::Outputs forward(const gantry::Batch& batch, gantry::Mode) override {
    const at::Tensor features = blocks.run(
        "backbone", [this](const at::Tensor& x) { return backbone_->forward(x); }, batch.tensor(input_key_));
    const at::Tensor pooled = neck_ != nullptr ? neck_->forward(features) : features;
    const at::Tensor logits = whole_head_ != nullptr ? whole_head_->forward(pooled) : head_->forward(pooled);
    gantry::Outputs outputs;
    if (batch.has(label_key_)) outputs.set("loss", loss_->forward(logits, batch.tensor(label_key_)));
    outputs.set("logits", logits);
    if (probes->wanted()) show(batch, logits);
    return outputs;
  }

  void train(bool on = true) override {
    gantry::Model::train(on);
    if (!freeze_bn_) return;
    for (const auto& module : modules())
      if (dynamic_cast<torch::nn::BatchNorm2dImpl*>(module.get()) != nullptr ||
          dynamic_cast<torch::nn::BatchNorm1dImpl*>(module.get()) != nullptr)
        module->eval();
  }

 private:
  int64_t features_for_head(const gantry::Config& config) const {
    const char* key = neck_ != nullptr && neck_->out_features() > 0 ? "NECK" : "BACKBONE";
    const int64_t features =
        neck_ != nullptr && neck_->out_features() > 0 ? neck_->out_features() : backbone_->out_features();
    if (features <= 0)
      throw config.error(key, config.get<gantry::Config>(key).name() + " does not say how many features it puts out");
    return features;
  }

  /// Some of the images with what they are taken for, and how often each class was predicted.
  void show(const gantry::Batch& batch, const at::Tensor& logits) {
    constexpr int64_t kMostImages = 16;
    if (logits.dim() != 2) return;
    const at::Tensor predictions = logits.detach().argmax(1).cpu();
    probes->distribution("predictions", predictions);
    const at::Tensor& images = batch.tensor(input_key_);
    if (images.dim() != 4 || (images.size(1) != 1 && images.size(1) != 3) || images.numel() == 0) return;
    const int64_t count = std::min(images.size(0), kMostImages);
    at::Tensor shown = images.narrow(0, 0, count).detach().to(at::kFloat);
    shown = shown - shown.min();
    shown = shown / shown.max().clamp_min(1e-12);
    const at::Tensor targets = batch.has(label_key_) ? batch.tensor(label_key_).cpu() : at::Tensor();
    std::vector<std::string> labels;
    for (int64_t i = 0; i < count; ++i) {
      const auto class_of = [i](const at::Tensor& classes) { return std::to_string(classes[i].item().toLong()); };
      const bool known = targets.defined() && targets.dim() == 1;
      labels.push_back((known ? class_of(targets) + " → " : "→ ") + class_of(predictions));
    }
    probes->image("inputs", shown, std::move(labels));
  }

  std::string input_key_, label_key_;
  bool freeze_bn_;
  std::shared_ptr<gantry::Module> backbone_;
  std::shared_ptr<gantry::Module> neck_, whole_head_;  // null: none; a linear head
  torch::nn::Linear head_{nullptr};
  std::shared_ptr<gantry::Loss> loss_;
};

}  // namespace

GANTRY_PLUGIN("gantry-classifier", GANTRY_VERSION);
GANTRY_MODEL(Classifier, "Classifier", "A backbone with a linear head and a loss.");
