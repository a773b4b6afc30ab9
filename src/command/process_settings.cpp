#include "command/process_settings.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>

#include "command/device.h"

namespace gradflow {
namespace {

/// Half of the machine's memory, and no more than a quarter of what the process may have of addresses. Where the kernel
/// promises no more than it has, addresses are as scarce as memory: little then.
std::size_t room_for_heap() {
  std::size_t room =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 2;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA})
    if (rlimit limit{}; getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      room = std::min<std::size_t>(room, limit.rlim_cur / 4);
  constexpr int strict = 2;
  if (int overcommit = 0; std::ifstream("/proc/sys/vm/overcommit_memory") >> overcommit && overcommit == strict)
    room = std::min<std::size_t>(room, std::size_t{256} << 20);
  return room;
}

/// A step asks for hundreds of tensors and gives them back. By default the C library takes the larger ones from the
/// kernel each time, which clears every page of 4 kB anew. Here they come from a heap that is grown once, keeps what it
/// is given back, and lies in huge pages. Address space is reserved, not memory: a page counts when it is first used.
void set_up_heap() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  static bool done = false;
  if (std::exchange(done, true)) return;
  constexpr std::size_t huge_page = std::size_t{2} << 20, least = std::size_t{64} << 20;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most it takes
  mallopt(M_TOP_PAD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, -1);  // never give back
  const auto end_of_heap = [] { return reinterpret_cast<std::uintptr_t>(sbrk(0)); };
  const std::uintptr_t begin = end_of_heap();
  // A block that fits nowhere else moves the heap's end. It must be used: a compiler leaves out what is only taken and
  // given back.
  mallopt(M_MMAP_MAX, 0);
  std::unique_ptr<void, decltype(&std::free)> block(nullptr, &std::free);
  for (std::size_t size = room_for_heap(); size >= least && block == nullptr; size /= 2) block.reset(std::malloc(size));
  mallopt(M_MMAP_MAX, 65536);  // as it was
  const std::uintptr_t end = end_of_heap();
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
