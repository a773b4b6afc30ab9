#include "core/build_info.h"

namespace gradflow {

extern const char* const git_revision;  // written by the build, core/git_revision.cmake

const BuildInfo& build_info() {
#ifdef __clang__
  static constexpr std::string_view compiler = "clang++ " __clang_version__;
#else
  static constexpr std::string_view compiler = "g++ " __VERSION__;
#endif
  static const BuildInfo info{GRADFLOW_VERSION, git_revision, compiler, GRADFLOW_BUILD_TYPE};
  return info;
}

}  // namespace gradflow
