#include "core/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

/// A file system of which only a few files exist.
class FakeRoot {
 public:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder_.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::optional<std::int64_t> available() const { return available_memory(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST(AvailableMemory, IsWhatTheKernelSays) {
  FakeRoot root;
  root.write("/proc/meminfo", "MemTotal:  8000 kB\nMemFree:  10 kB\nMemAvailable:   3000 kB\n");
  EXPECT_EQ(root.available(), 3000 * 1024);
}

TEST(AvailableMemory, IsUnknownWhereNobodySays) { EXPECT_EQ(FakeRoot().available(), std::nullopt); }

TEST(AvailableMemory, ObeysAControlGroupAndThoseAroundIt) {
  FakeRoot root;
  root.write("/proc/meminfo", "MemAvailable:   3000 kB\n");
  root.write("/proc/self/cgroup", "0::/job/step\n");
  root.write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  root.write("/sys/fs/cgroup/job/step/memory.current", "5\n");
  EXPECT_EQ(root.available(), 3000 * 1024);
  root.write("/sys/fs/cgroup/job/memory.max", "1000000\n");
  root.write("/sys/fs/cgroup/job/memory.current", "700000\n");
  EXPECT_EQ(root.available(), 300000);
  root.write("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 50000\n");
  EXPECT_EQ(root.available(), 350000);
  root.write("/sys/fs/cgroup/job/memory.current", "2000000\n");
  EXPECT_EQ(root.available(), 0);
}

TEST(AvailableMemory, SeesALimitAtTheTopOfAContainer) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/\n");
  root.write("/sys/fs/cgroup/memory.max", "1000\n");
  root.write("/sys/fs/cgroup/memory.current", "400\n");
  EXPECT_EQ(root.available(), 600);
}

TEST(AvailableMemory, ReadsTheOlderControlGroups) {
  FakeRoot root;
  root.write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/job\n1:name=systemd:/b\n");
  root.write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n");
  root.write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "900\n");
  root.write("/sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 30\n");
  EXPECT_EQ(root.available(), 130);
}

TEST(AvailableMemory, IsKnownHere) {
  const auto available = available_memory();
  ASSERT_TRUE(available.has_value());
  EXPECT_GT(*available, 0);
}

TEST(PeakMemory, GrowsWithWhatIsHeld) {
  const std::int64_t before = peak_memory();
  const std::vector<char> block(static_cast<std::size_t>(before), 1);
  EXPECT_GT(peak_memory(), before + before / 2);
  EXPECT_EQ(block.back(), 1);
}

TEST(BytesInWords, ThreeDigits) {
  EXPECT_EQ(bytes_in_words(0), "0 B");
  EXPECT_EQ(bytes_in_words(512), "512 B");
  EXPECT_EQ(bytes_in_words(999), "999 B");
  EXPECT_EQ(bytes_in_words(999600), "1 MB");
  EXPECT_EQ(bytes_in_words(1234567), "1.23 MB");
  EXPECT_EQ(bytes_in_words(4.5e9), "4.5 GB");
  EXPECT_EQ(bytes_in_words(1e19), "10000 PB");
}

}  // namespace
}  // namespace gradflow
