#include "command/device.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace gradflow {
namespace {

std::string error_of(const std::string& name, std::int64_t devices) {
  try {
    device_named(name, devices);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::error);
    return error.what();
  }
  return "";
}

TEST(Device, CpuNeedsNothing) { EXPECT_EQ(device_named("cpu", 0), at::Device(at::kCPU)); }

TEST(Device, OnlyAutoFallsBack) {
  EXPECT_EQ(device_named("auto", 0), at::Device(at::kCPU));
  EXPECT_EQ(device_named("auto", 2), at::Device(at::kCUDA, 0));
  for (const char* name : {"cuda", "cuda:0"}) {
    const std::string error = error_of(name, 0);
    EXPECT_TRUE(error.starts_with(std::string("compute.device: \"") + name + "\" cannot be used: ")) << error;
    EXPECT_NE(error.find("\"cpu\""), std::string::npos) << error;
  }
}

TEST(Device, AnIndexMustBeThere) {
  EXPECT_EQ(device_named("cuda", 1), at::Device(at::kCUDA, 0));
  EXPECT_EQ(device_named("cuda:1", 2), at::Device(at::kCUDA, 1));
  EXPECT_NE(error_of("cuda:1", 1).find("only 1 device is visible, cuda:0;"), std::string::npos)
      << error_of("cuda:1", 1);
  EXPECT_NE(error_of("cuda:4", 4).find("only 4 devices are visible, cuda:0 … cuda:3;"), std::string::npos);
}

TEST(Device, OtherNamesAreRefused) {
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "mps", ""})
    EXPECT_NE(error_of(name, 2).find("is no device; write cpu, cuda, cuda:N or auto"), std::string::npos) << name;
}

}  // namespace
}  // namespace gradflow
