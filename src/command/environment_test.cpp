#include "command/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gradflow {
namespace {

using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Environment, SaysWhatThisProcessRunsOn) {
  const Environment found = environment();
  EXPECT_THAT(found.libtorch, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_TRUE(std::ifstream(found.libtorch_path).good()) << found.libtorch_path;
  EXPECT_NE(found.blas, "");
  EXPECT_THAT(found.blas, Not(MatchesRegex(".* "))) << "a BLAS without its version";
  EXPECT_NE(found.blas_kernel, "");
  EXPECT_NE(found.simd, "");
  EXPECT_GE(found.cores, 1);
  if (found.cuda_devices == 0)
    EXPECT_THAT(found.cuda, StartsWith("not available: "));
  else
    EXPECT_THAT(found.cuda, MatchesRegex("[0-9]+\\.[0-9]+, [0-9]+ devices?"));
}

}  // namespace
}  // namespace gradflow
