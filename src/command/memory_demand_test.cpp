#include "command/memory_demand.h"

#include <gtest/gtest.h>

#include "config/resolved.h"

namespace gradflow {
namespace {

TEST(MemoryDemand, SoManyRunsAtATimeAsTheLargestOfThemFit) {
  const double demands[] = {1, 5, 2, 4, 3};
  EXPECT_EQ(largest_together(demands, 2), 9);
  EXPECT_EQ(largest_together(demands, 9), 15);
  EXPECT_EQ(jobs_within(demands, 2, 9), 2);
  EXPECT_EQ(jobs_within(demands, 2, 8), 1);
  EXPECT_EQ(jobs_within(demands, 9, 15), 9);
  EXPECT_EQ(jobs_within(demands, 9, 11), 2);
  EXPECT_EQ(jobs_within(demands, 3, 4), 0) << "the largest does not fit alone";
  EXPECT_EQ(jobs_within({}, 3, 0), 3) << "nothing is to be run";
}

TEST(MemoryDemand, OfAConfigurationNeedsNoData) {
  Config config;
  config.data.task = Task::text;
  config.data.files = {"no such file"};
  config = resolved(config);
  EXPECT_GT(memory_demand(config, at::kCPU).own, 0);
  EXPECT_GT(memory_demand(config, at::kCPU).program, 0);
  EXPECT_EQ(memory_demand(config, at::kCUDA).own, 0) << "main memory is meant";
}

}  // namespace
}  // namespace gradflow
