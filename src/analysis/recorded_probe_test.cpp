#include "analysis/recorded_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "output/table.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using ::testing::HasSubstr;

class RecordedProbeTest : public ::testing::Test {
 protected:
  RecordedProbe read(const std::string& rows) {
    write_file_atomically(folder_ / "probe.csv", header_line(probe_columns()) + "\n" + rows);
    return read_probe(folder_.path());
  }
  std::string fault_of(const std::string& rows) {
    try {
      read(rows);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
};

TEST_F(RecordedProbeTest, HasACellForEachKindAndDepth) {
  const RecordedProbe probe = read(
      "pre,layernorm,add,xavier_normal,2,1,1,ffn,stream_rms,1.5,1.25,2\n"
      "pre,layernorm,add,xavier_normal,2,2,1,ffn,stream_rms,nan,,\n"
      "pre,layernorm,add,xavier_normal,4,1,,,jacobian_gain,3,,\n"
      "post,layernorm,add,xavier_normal,4,1,,,jacobian_gain,3,,\n"
      "post,layernorm,add,xavier_normal,4,2,,,jacobi");
  ASSERT_EQ(probe.cells.size(), 3u);
  ASSERT_EQ(probe.cells[0].values.size(), 2u);
  EXPECT_EQ(probe.cells[0].values[0].layer, 1);
  EXPECT_EQ(probe.cells[0].values[0].value, 1.5);
  EXPECT_EQ(probe.cells[0].values[0].predicted->high, 2);
  EXPECT_TRUE(std::isnan(probe.cells[0].values[1].value));
  EXPECT_FALSE(probe.cells[0].values[1].predicted);
  EXPECT_EQ(probe.cells[1].depth, 4);
  EXPECT_FALSE(probe.cells[1].values[0].layer);
  EXPECT_EQ(probe.cells[2].kind.placement, "post");
  EXPECT_EQ(probe.cells[2].values.size(), 1u) << "the cut line";
}

TEST_F(RecordedProbeTest, NamesWhatIsDamaged) {
  EXPECT_THAT(fault_of(""), HasSubstr("probe.csv: holds no row"));
  EXPECT_THAT(fault_of("pre,layernorm,add,xavier_normal,x,1,1,ffn,stream_rms,1,,\n"), HasSubstr("probe.csv:2: depth"));
  EXPECT_THAT(fault_of("pie,layernorm,add,xavier_normal,2,1,1,ffn,stream_rms,1,,\n"), HasSubstr("pie, layernorm"));
  EXPECT_THAT(fault_of("pre,layernorm,add,xavier_normal,0,1,1,ffn,stream_rms,1,,\n"), HasSubstr("depth 0"));
  EXPECT_THAT(fault_of("pre,layernorm,add,xavier_normal,4000000000000,1,1,ffn,stream_rms,1,,\n"),
              HasSubstr("no stack of this version"));
  EXPECT_THAT(fault_of("pre,layernorm,add,xavier_normal,2,1,1,ffn,../x,1,,\n"), HasSubstr("quantity: \"../x\""));
  write_file_atomically(folder_ / "probe.csv", "a,b\n");
  EXPECT_THROW(read_probe(folder_.path()), Error);
}

}  // namespace
}  // namespace gradflow
