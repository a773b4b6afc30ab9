#include "measure/matrix_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/resolved.h"
#include "testing/small_transformer.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

Config small() { return testing::small_transformer({.vocabulary = 16, .context = 5, .batch = 3}); }

std::vector<std::vector<std::int64_t>> shapes(const Config& config) {
  const Config whole = resolved(config);
  std::vector<std::vector<std::int64_t>> found;
  const std::optional<std::vector<MatrixProduct>> products = matrix_products(whole, make_layout(whole));
  for (const MatrixProduct& product : products.value()) found.push_back({product.rows, product.in, product.out});
  return found;
}

using Shape = std::vector<std::int64_t>;

TEST(MatrixProducts, OfATransformerAreItsLinearLayersAndTheHead) {
  const std::vector<Shape> block = {{15, 8, 24}, {15, 8, 8}, {15, 8, 32}, {15, 32, 8}};
  EXPECT_THAT(shapes(small()), ElementsAre(block[0], block[1], block[2], block[3], block[0], block[1], block[2],
                                           block[3], Shape{15, 8, 16}));
  Config tied = small();
  tied.model.tie_embeddings = true;
  EXPECT_EQ(shapes(tied), shapes(small())) << "the shared matrix multiplies as well";
}

TEST(MatrixProducts, OfAnMlpHaveARowASample) {
  Config config = small();
  config.model.stack = StackKind::mlp;
  config.data.task = Task::teacher;
  config.model.depth = 1;
  EXPECT_THAT(shapes(config), ElementsAre(Shape{3, 32, 8}, Shape{3, 8, 8}, Shape{3, 8, 8}, Shape{3, 8, 10}));
}

TEST(MatrixProducts, AResnetHasNone) {
  Config config = small();
  config.model.stack = StackKind::resnet;
  config.model.depth = 3;
  config.data.task = Task::cifar10;
  const Config whole = resolved(config);
  EXPECT_FALSE(matrix_products(whole, make_layout(whole)).has_value());
}

TEST(MatrixProducts, OperationsOfAStepCountForwardAndBackwardOfEveryMicroBatch) {
  const MatrixProduct product{.rows = 4, .in = 6, .out = 10};
  EXPECT_EQ(product.operations(), 3 * 2 * 4 * 6 * 10);
  MatrixProductClock clock({product, product}, ComputeConfig{}, 3, at::kCPU);
  EXPECT_EQ(clock.operations(), 3 * 2 * product.operations());
  EXPECT_GT(clock.seconds(), 0);
}

}  // namespace
}  // namespace gradflow
