#include "command/process_settings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace gradflow {
namespace {

/// The flags of the mapping in which `address` lies, as the kernel tells them; empty: it does not.
std::string mapping_flags(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream mappings("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(mappings, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream(line) >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= wanted && wanted < end;
    else if (inside && line.rfind("VmFlags:", 0) == 0)
      return line + ' ';
  }
  return {};
}

/// Without this, the pages of a stack's buffers are of 4 kB, and deep stacks of small operators a tenth slower.
TEST(ProcessSettings, PutLargeBuffersIntoHugePages) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer has a heap of its own";
#endif
  constexpr std::size_t large = std::size_t{4} << 20;
  const std::unique_ptr<void, decltype(&std::free)> page(std::aligned_alloc(large, large), &std::free);
  if (madvise(page.get(), large, MADV_HUGEPAGE) != 0 || mapping_flags(page.get()).find(" hg ") == std::string::npos)
    GTEST_SKIP() << "this kernel has no huge pages, or does not tell";

  set_up_process(ComputeConfig());
  const std::unique_ptr<void, decltype(&std::free)> buffer(std::malloc(24 << 20), &std::free);
  EXPECT_NE(mapping_flags(static_cast<char*>(buffer.get()) + (12 << 20)).find(" hg "), std::string::npos);
}

}  // namespace
}  // namespace gradflow
