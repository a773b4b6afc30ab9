#include "command/process_settings.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "command/device.h"

namespace gradflow {
namespace {

/// A step asks for hundreds of tensors and gives them back. By default the C library takes the larger ones from the
/// kernel each time, which clears every page of 4 kB anew. Here they come from a heap that is grown once, keeps what it
/// is given back, and lies in huge pages. Address space is reserved, not memory: a page counts when it is first used.
void set_up_heap() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  static bool done = false;
  if (std::exchange(done, true)) return;
  constexpr std::size_t reserved = std::size_t{2} << 30, huge_page = std::size_t{2} << 20;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most it takes
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, static_cast<int>(reserved - 1));
  // The heap's end moves when something does not fit before it; where so much is not allowed, it moves less far. What
  // is asked for must be used: a compiler leaves out what is only taken and given back.
  const auto end_of_heap = [] { return reinterpret_cast<std::uintptr_t>(sbrk(0)); };
  const std::uintptr_t begin = end_of_heap();
  std::vector<std::unique_ptr<void, decltype(&std::free)>> pieces;
  for (int tries = 0; tries < 4 && end_of_heap() == begin; ++tries)
    pieces.emplace_back(std::malloc(std::size_t{16} << 20), &std::free);
  pieces.clear();
  const std::uintptr_t end = end_of_heap();
  mallopt(M_TOP_PAD, 64 << 20);
  const std::uintptr_t first = (begin + huge_page - 1) / huge_page * huge_page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

}  // namespace

void set_up_process(const ComputeConfig& compute) {
  set_up_heap();
  set_up_libtorch(compute);
}

}  // namespace gradflow
