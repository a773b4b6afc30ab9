#include "command/gemm_share.h"

#include <gmock/gmock.h>

#include <vector>

namespace gradflow {
namespace {

TEST(GemmShare, AboveAHundredPercentIsCommentedWhereItIsPrinted) {
  EXPECT_EQ(gemm_share_note({}), "");
  EXPECT_EQ(gemm_share_note(std::vector{0.3, 1.0, 1.004}), "");
  EXPECT_EQ(gemm_share_text(1.004), "100 %");
  EXPECT_EQ(gemm_share_text(1.006), "101 %");
  EXPECT_THAT(gemm_share_note(std::vector{0.3, 1.006}),
              testing::AllOf(testing::HasSubstr("above 100 %"), testing::EndsWith("--repeat.\n")));
}

}  // namespace
}  // namespace gradflow
