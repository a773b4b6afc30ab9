#include "core/mapped_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <new>

namespace gradflow {
namespace {

std::atomic<std::size_t> mapped{0};

}  // namespace

void Unmap::operator()(std::byte* block) const {
  ::munmap(block, bytes);
  mapped -= bytes;
}

std::size_t mapped_bytes() { return mapped; }

MappedMemory map_memory(std::size_t bytes) {
  constexpr std::size_t page = 4096, huge_page = std::size_t{2} << 20;
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * huge_page) throw std::bad_alloc();
  const std::size_t unit = bytes < huge_page ? page : huge_page;
  bytes = (std::max<std::size_t>(1, bytes) + unit - 1) / unit * unit;
  // A huge page begins at a multiple of its size: older kernels do not see to that by themselves.
  const std::size_t more = unit == huge_page ? huge_page : 0;
  void* const taken = ::mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken == MAP_FAILED) throw std::bad_alloc();
  auto* block = static_cast<std::byte*>(taken);
  if (more != 0) {
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(taken) % huge_page;
    if (before != 0) ::munmap(block, before);
    block += before;
    if (more != before) ::munmap(block + bytes, more - before);
#ifdef MADV_HUGEPAGE
    ::madvise(block, bytes, MADV_HUGEPAGE);  // a wish; without it everything works, slower
#endif
  }
  mapped += bytes;
  return MappedMemory(block, Unmap{bytes});
}

}  // namespace gradflow
