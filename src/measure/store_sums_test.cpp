#include "measure/store_sums.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/backend.h"
#include "measure/readout.h"
#include "testing/training.h"

namespace gradflow {
namespace {

TEST(ParameterStore, HoldsEveryParameterOnceOnItsOwnCacheLine) {
  const Config config = testing::tiny_config();
  Stack stack(config, at::kCPU);
  ParameterStore& store = stack.store();
  std::int64_t end = 0, elements = 0;
  for (const ParameterStore::Entry& entry : store.entries()) {
    EXPECT_EQ(entry.offset % 16, 0) << entry.name;
    EXPECT_GE(entry.offset, end) << entry.name;
    end = entry.offset + entry.size;
    elements += entry.size;
  }
  EXPECT_EQ(elements, stack.layout().parameter_count());
  EXPECT_LE(end, store.values().numel());
}

TEST(ParameterStore, NamesAreViewsAndTheGapsStayZero) {
  Config config = testing::tiny_config();
  config.model.width = 6;  // bias and norm vectors of 6 leave gaps
  config = resolved(config);
  config.model.ffn_width = 10;
  const testing::TrainedRun run = testing::train(config);
  ParameterStore& store = run.stack->store();
  at::Tensor outside = at::ones_like(store.values());
  for (const ParameterStore::Entry& entry : store.entries()) {
    outside.narrow(0, entry.offset, entry.size).zero_();
    EXPECT_EQ(store.parameter(entry.name).data_ptr<float>(), store.values().data_ptr<float>() + entry.offset);
    EXPECT_EQ(store.gradient(entry.name).data_ptr<float>(), store.gradients().data_ptr<float>() + entry.offset);
  }
  EXPECT_GT(outside.sum().item<double>(), 0);
  for (const at::Tensor& buffer : {store.values(), store.gradients(), store.first_moment(), store.second_moment()})
    EXPECT_EQ((buffer * outside).abs().sum().item<double>(), 0);
}

TEST(GradientSums, MadeInPassingAreThoseOfTheWholeBuffer) {
  struct Case {
    Backend backend;
    bool tied;
    std::int64_t width;  // 16: products of our own; 6: by the BLAS, and q, k and v are three maps
  };
  for (const Case& c : {Case{Backend::aten, false, 16}, Case{Backend::aten, true, 16}, Case{Backend::fused, false, 16},
                        Case{Backend::fused, true, 16}, Case{Backend::fused, false, 6}}) {
    SCOPED_TRACE(::testing::Message() << name_of(c.backend) << ", width " << c.width << ", tied " << c.tied);
    Config config = testing::tiny_config();
    config.model.tie_embeddings = c.tied;
    config.model.width = c.width;
    config.compute.backend = c.backend;
    config = resolved(config);
    const auto data = make_source(config);
    const Batch batches[] = {data->training_batch(1, 0), data->training_batch(1, 1)};
    Stack stack(config, at::kCPU, segment_factory(config, at::kCPU));
    ParameterStore& store = stack.store();
    store.zero_gradients();
    for (const Batch& batch : batches) {
      stack.forward({.batch = &batch});
      stack.backward({.batch = &batch}, 0.5);
    }
    const GradientSums expected = gradient_sums(store);
    const at::Tensor gradients = store.gradients().clone();

    for (const ParameterStore::Entry& entry : store.entries())
      store.gradient(entry.name).fill_(NAN);  // of the step before
    GradientsInPassing in_passing(store);
    for (const bool last : {false, true}) {
      const Batch& batch = batches[last ? 1 : 0];
      stack.forward({.batch = &batch});
      in_passing.micro_batch(!last, last);
      stack.backward({.batch = &batch}, 0.5, {}, &in_passing);
    }
    const GradientSums sums = in_passing.take();
    EXPECT_TRUE(at::equal(store.gradients(), gradients));
    EXPECT_EQ(sums.squares, expected.squares);
    EXPECT_EQ(sums.nonfinite, expected.nonfinite);
    EXPECT_GT(sums.norm(), 0);
  }
}

TEST(GradientSums, AreThoseOfEachTensorInDouble) {
  const testing::TrainedRun run = testing::train(testing::tiny_config());
  ParameterStore& store = run.stack->store();
  const GradientSums sums = gradient_sums(store);
  double total = 0;
  for (std::size_t e = 0; e < store.entries().size(); ++e) {
    const double expected = store.gradient(store.entries()[e].name).to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(sums.squares[e], expected, 1e-12 * expected);
    total += expected;
  }
  EXPECT_NEAR(sums.norm(), std::sqrt(total), 1e-12 * std::sqrt(total));
  double by_segment = 0;
  for (const double square : per_segment(store, sums.squares)) by_segment += square;
  EXPECT_NEAR(std::sqrt(by_segment), sums.norm(), 1e-12 * sums.norm());
}

TEST(GradientSums, CountNonFiniteElementsOfTheirTensor) {
  Stack stack(testing::tiny_config(), at::kCPU);
  ParameterStore& store = stack.store();
  store.gradient("block.2.ffn.in.weight").flatten()[3] = std::nan("");
  store.gradient("block.2.ffn.in.weight").flatten()[4] = INFINITY;
  store.gradient("head.weight").flatten()[0] = -INFINITY;
  const GradientSums sums = gradient_sums(store);
  EXPECT_EQ(sums.nonfinite_total, 3);
  for (std::size_t e = 0; e < sums.nonfinite.size(); ++e) {
    const std::string& name = store.entries()[e].name;
    EXPECT_EQ(sums.nonfinite[e], name == "block.2.ffn.in.weight" ? 2 : name == "head.weight" ? 1 : 0) << name;
  }
}

TEST(SegmentReduce, GivesTheSumsThatADeviceWouldMake) {
  // The path of a device, on the CPU: one reduction over all slices.
  const testing::TrainedRun run = testing::train(testing::tiny_config());
  ParameterStore& store = run.stack->store();
  const std::vector<double> own = entry_squares(store, store.values());
  const std::vector<double> reduced = read_back(slice_squares(store, store.values()));
  ASSERT_EQ(own.size(), reduced.size());
  for (std::size_t e = 0; e < own.size(); ++e) EXPECT_NEAR(reduced[e], own[e], 1e-12 * own[e]);
}

}  // namespace
}  // namespace gradflow
