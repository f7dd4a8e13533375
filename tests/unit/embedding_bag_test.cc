#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include "gantry/model.h"
#include "plugin_under_test.h"
#include "unit/messages.h"

namespace {

std::shared_ptr<gantry::Module> bag(const std::string& pooling, const std::string& sparse = "false") {
  std::shared_ptr<gantry::Module> module =
      PluginUnderTest("gantry-embedding-bag")
          .build<gantry::Module>("EmbeddingBag", map_config({
                                                     {"NUM_EMBEDDINGS", text_config("5")},
                                                     {"EMBEDDING_DIM", text_config("2")},
                                                     {"POOLING", text_config(pooling)},
                                                     {"SPARSE", text_config(sparse)},
                                                 }));
  const auto parameters = gantry::named_parameters(*module);
  REQUIRE(parameters.size() == 1);
  CHECK(parameters[0].name == "weight");  // as in PyTorch
  const at::NoGradGuard no_grad;
  at::Tensor(parameters[0].tensor).copy_(at::arange(10).view({5, 2}));
  return module;
}

at::Tensor tokens(std::vector<int64_t> values) { return at::tensor(values).view({2, -1}); }
at::Tensor rows(std::vector<float> values) { return at::tensor(values).view({-1, 2}); }

}  // namespace

TEST_CASE("EmbeddingBag gives the mean or the sum of the vectors of each sample") {
  CHECK(bag("mean")->out_features() == 2);
  CHECK(bag("mean")->forward(tokens({0, 2, 4, 4})).equal(rows({2, 3, 8, 9})));
  CHECK(bag("sum")->forward(tokens({0, 2, 4, 4})).equal(rows({4, 6, 16, 18})));
}

TEST_CASE("the gradient of a sparse EmbeddingBag holds the rows that were looked up") {
  const auto sparse = bag("sum", "true"), dense = bag("sum");
  for (const auto& module : {sparse, dense}) module->forward(tokens({0, 2, 4, 4})).sum().backward();
  const at::Tensor gradient = gantry::named_parameters(*sparse)[0].tensor.grad();
  REQUIRE(gradient.is_sparse());
  CHECK(gradient.coalesce()._indices().equal(at::tensor(std::vector<int64_t>{0, 2, 4}).view({1, 3})));
  const at::Tensor whole = gantry::named_parameters(*dense)[0].tensor.grad();
  CHECK_FALSE(whole.is_sparse());
  CHECK(whole.equal(rows({1, 1, 0, 0, 1, 1, 0, 0, 2, 2})));
  CHECK(gradient.to_dense().equal(whole));
}

TEST_CASE("EmbeddingBag says which token it has no vector for") {
  const auto module = bag("mean");
  CHECK(contains(message_of([&] { module->forward(tokens({0, 5, 1, 2})); }), "a token is 5, but NUM_EMBEDDINGS is 5"));
  CHECK(contains(message_of([&] { module->forward(tokens({0, -1, 1, 2})); }), "a token is -1"));
  CHECK(contains(message_of([&] { module->forward(rows({0, 1})); }), "EmbeddingBag takes int64 tokens"));
}
