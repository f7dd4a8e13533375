#include <gantry/torch.h>

namespace {

/// From tokens [N, L] to the mean, or the sum, of their vectors [N, EMBEDDING_DIM]. The weight begins as PyTorch's
/// does.
class EmbeddingBag final : public gantry::Module {
 public:
  static void declare(gantry::Parameters& p) {
    p.add<int64_t>("NUM_EMBEDDINGS").at_least(1).help("How many tokens there are; theirs are the numbers below it.");
    p.add<int64_t>("EMBEDDING_DIM").at_least(1).help("Size of a token's vector.");
    p.add<std::string>("POOLING", "mean").choices({"mean", "sum"}).help("What becomes of a sample's vectors.");
    p.add<bool>("SPARSE", false)
        .help(
            "Whether the gradient holds the looked-up rows alone, which SGD without WEIGHT_DECAY and SparseAdam take.");
  }

  EmbeddingBag(const gantry::Config& config, gantry::Context&)
      : tokens_(config.get<int64_t>("NUM_EMBEDDINGS")), dim_(config.get<int64_t>("EMBEDDING_DIM")) {
    options_.sparse(config.get<bool>("SPARSE"));
    if (config.get<std::string>("POOLING") == "sum")
      options_.mode(torch::kSum);
    else
      options_.mode(torch::kMean);
    weight_ = register_parameter("weight", torch::randn({tokens_, dim_}));
  }

  at::Tensor forward(const at::Tensor& input) override {
    if (input.dim() != 2 || (input.scalar_type() != at::kLong && input.scalar_type() != at::kInt))
      throw gantry::Error(gantry::cat("EmbeddingBag takes int64 tokens [samples, tokens of each], not ",
                                      c10::toString(input.scalar_type()), " ", input.sizes()));
    if (input.is_cpu() && input.numel() > 0) {  // reading them from a GPU would wait for it; its kernels check
      const auto [least, greatest] = input.aminmax();
      if (least.item<int64_t>() < 0 || greatest.item<int64_t>() >= tokens_)
        throw gantry::Error(
            gantry::cat("a token is ", least.item<int64_t>() < 0 ? least.item<int64_t>() : greatest.item<int64_t>(),
                        ", but NUM_EMBEDDINGS is ", tokens_, ": tokens are to be in [0, ", tokens_, ")"));
    }
    return torch::nn::functional::embedding_bag(input, weight_, options_);
  }
  int64_t out_features() const override { return dim_; }

 private:
  int64_t tokens_, dim_;
  torch::nn::functional::EmbeddingBagFuncOptions options_;
  at::Tensor weight_;
};

}  // namespace

GANTRY_PLUGIN("gantry-embedding-bag", GANTRY_VERSION);
GANTRY_MODULE(EmbeddingBag, "EmbeddingBag", "Backbone that takes the mean or the sum of tokens' vectors.");
