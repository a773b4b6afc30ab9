#include "core/mapped_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

namespace gradflow {
namespace {

TEST(MappedMemory, IsZeroAndWritable) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{5} << 20}) {
    const MappedMemory block = map_memory(bytes);
    EXPECT_EQ(std::count(block.get(), block.get() + bytes, std::byte{0}), static_cast<std::ptrdiff_t>(bytes));
    std::fill_n(block.get(), bytes, std::byte{1});
    EXPECT_EQ(block.get()[bytes - 1], std::byte{1});
    EXPECT_GE(mapped_bytes(), bytes);
  }
  EXPECT_EQ(mapped_bytes(), 0u);
  EXPECT_NE(map_memory(0), nullptr);
}

TEST(MappedMemory, SaysWhenThereIsNone) {
  EXPECT_THROW(map_memory(std::size_t{1} << 60), std::bad_alloc);
  EXPECT_THROW(map_memory(~std::size_t{0}), std::bad_alloc);
}

}  // namespace
}  // namespace gradflow
