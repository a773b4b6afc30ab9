// Loss, logits, the gradient norm of every parameter and every site of the golden cases, which an independent float64
// program made (src/testing/golden/oracle.py).

#include <gtest/gtest.h>

#include <algorithm>

#include "data/source.h"
#include "testing/golden.h"
#include "testing/golden_stack.h"

namespace gradflow {
namespace {

using testing::golden_case;
using testing::golden_config;
using testing::golden_names;

/// The batch of the mlp and resnet cases: x = 1.5·sin(0.37·i + 0.5) with i the row-major index, labels (3b + 1) mod
/// classes.
Batch wave_batch(const Config& config) {
  const std::int64_t samples = config.train.batch, side = config.data.side;
  const std::vector<std::int64_t> shape = config.model.stack == StackKind::resnet
                                              ? std::vector<std::int64_t>{samples, config.data.inputs, side, side}
                                              : std::vector<std::int64_t>{samples, config.data.inputs};
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  const at::Tensor inputs = 1.5 * at::sin(at::arange(size, at::kDouble) * 0.37 + 0.5);
  return {.inputs = inputs.view(shape),
          .targets = (at::arange(samples, at::kLong) * 3 + 1) % config.data.classes,
          .real = {},
          .tokens = samples};
}

void reproduce(const std::string& name, Dtype dtype, bool recompute) {
  SCOPED_TRACE(name);
  const nlohmann::json golden = golden_case(name);
  const Config config = golden_config(golden.at("config"), dtype);
  const Batch batch =
      config.model.stack == StackKind::transformer ? make_source(config)->training_batch(1, 0) : wave_batch(config);
  testing::expect_golden(golden, config, batch, recompute);
}

class GoldenStack : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenStack, Float64) { reproduce(GetParam(), Dtype::float64, false); }
TEST_P(GoldenStack, Float32) { reproduce(GetParam(), Dtype::float32, false); }
TEST_P(GoldenStack, Recomputed) { reproduce(GetParam(), Dtype::float64, true); }

INSTANTIATE_TEST_SUITE_P(Cases, GoldenStack, ::testing::ValuesIn(golden_names({"train-"}, false)),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace gradflow
