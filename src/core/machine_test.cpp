#include "core/machine.h"

#include <gtest/gtest.h>

namespace gradflow {
namespace {

TEST(Machine, ReadsTheProcessorsName) {
  EXPECT_EQ(cpu_model_in("processor\t: 0\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: A processor @ 2.5GHz\n"),
            "A processor @ 2.5GHz");
  EXPECT_EQ(cpu_model_in("processor : 0\nCPU implementer : 0x41\nCPU part\t: 0xd0c"), "0xd0c");
  EXPECT_EQ(cpu_model_in("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"), "POWER9, altivec supported");
  EXPECT_EQ(cpu_model_in(": \n\nmodel name\t:\n"), "unknown");
  EXPECT_EQ(cpu_model_in(""), "unknown");
}

TEST(Machine, HasAName) { EXPECT_FALSE(host_name().empty()); }

}  // namespace
}  // namespace gradflow
