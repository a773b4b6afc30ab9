#include "core/build_info.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace gradflow {
namespace {

TEST(BuildInfo, NamesAVersionARevisionAndTheCompiler) {
  const BuildInfo& info = build_info();
  EXPECT_TRUE(std::regex_match(std::string(info.version), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << info.version;
  EXPECT_TRUE(std::regex_match(std::string(info.git_revision), std::regex("unknown|[0-9a-f]{12,40}(-dirty)?")))
      << info.git_revision;
  EXPECT_TRUE(std::regex_search(std::string(info.compiler), std::regex("^(g|clang)\\+\\+ [0-9]+\\.[0-9]+")))
      << info.compiler;
  EXPECT_FALSE(info.build_type.empty());
}

}  // namespace
}  // namespace gradflow
