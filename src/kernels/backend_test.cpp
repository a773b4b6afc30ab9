#include "kernels/backend.h"

#include <gmock/gmock.h>

#include "config/resolved.h"
#include "core/error.h"

namespace gradflow {
namespace {

Config with(Backend backend, double dropout = 0) {
  Config config;
  config.compute.backend = backend;
  config.model.dropout = dropout;
  return resolved(config);
}

TEST(ChosenBackend, IsTheNamedOne) {
  EXPECT_EQ(chosen_backend(with(Backend::aten), at::kCPU), Backend::aten);
  EXPECT_EQ(chosen_backend(with(Backend::fused), at::kCPU), Backend::fused);
  EXPECT_EQ(backend_in_words(with(Backend::aten), at::kCPU), "aten");
}

TEST(ChosenBackend, AutoTakesFusedWhereItServes) {
  EXPECT_EQ(chosen_backend(with(Backend::automatic), at::kCPU), Backend::fused);
  EXPECT_EQ(chosen_backend(with(Backend::automatic, 0.1), at::kCPU), Backend::aten);
  EXPECT_EQ(backend_in_words(with(Backend::automatic), at::kCPU), "fused");
  EXPECT_EQ(backend_in_words(with(Backend::automatic, 0.1), at::kCPU), "aten (fused cannot: model.dropout is 0.1)");
  Config config = with(Backend::automatic, 0.1);
  config.model.qk_norm = true;
  EXPECT_EQ(backend_in_words(config, at::kCPU), "aten (fused cannot: model.qk_norm is true, model.dropout is 0.1)");
}

TEST(ChosenBackend, TheDeviceThatWasFoundCounts) {
  Config config = with(Backend::automatic);
  config.compute.device = "auto";
  EXPECT_EQ(chosen_backend(config, at::Device(at::kCUDA, 0)), Backend::aten);
  config.compute.backend = Backend::fused;
  EXPECT_THAT([&] { chosen_backend(config, at::Device(at::kCUDA, 0)); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("the device is cuda:0 (write cpu); or write auto")));
  config.model.dropout = 0.1;
  EXPECT_THAT([&] { chosen_backend(config, at::Device(at::kCUDA, 0)); },
              ::testing::ThrowsMessage<Error>(
                  ::testing::HasSubstr("the device is cuda:0 (write cpu), model.dropout is 0.1 (write 0); or write")));
}

}  // namespace
}  // namespace gradflow
