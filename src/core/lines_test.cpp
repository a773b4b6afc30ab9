#include "core/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", text);
  LineReader reader(folder / "file");
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  return lines;
}

TEST(LineReader, GivesWholeLines) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("half"), Lines{});
  EXPECT_EQ(lines_of("a\n\nb\r\nhalf"), (Lines{"a", "", "b"}));
}

TEST(LineReader, LinesMayCrossAnyBorder) {
  // Lengths around the size of the reader's chunks, and one longer than a chunk.
  std::vector<std::string> lines;
  std::string text;
  for (const std::size_t length : {1u, 262'142u, 262'143u, 262'144u, 7u, 700'000u, 0u, 262'145u}) {
    lines.emplace_back(length, static_cast<char>('a' + lines.size()));
    text += lines.back() + '\n';
  }
  EXPECT_EQ(lines_of(text), lines);
}

TEST(LineReader, NamesAFileThatCannotBeRead) {
  EXPECT_THROW(LineReader("/nowhere/file"), Error);
  LineReader folder("/");
  EXPECT_THROW(folder.next(), Error);
}

}  // namespace
}  // namespace gradflow
