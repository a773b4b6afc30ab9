// A checkpoint as others read it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "testing/run_of_program.h"

namespace gradflow::testing {
namespace {

using namespace ::testing;

class CheckpointInPython : public ProgramTest {};

TEST_F(CheckpointInPython, OpensWithThePackage) {
  const std::string python = folder_ / "python";
  const Outcome set_up =
      RunningProgram("/bin/sh", {"-c", "python3 -m venv '" + python + "' && '" + python +
                                           "/bin/pip' install --quiet --disable-pip-version-check safetensors numpy"})
          .wait();
  if (set_up.code != 0) GTEST_SKIP() << "no Python with the package safetensors: " << set_up.err;
  ASSERT_EQ(run_gradflow(command(tiny(), Words{"steps=3"})).code, 0);
  const RunFiles run{folder_ / "run"};
  const Outcome read = RunningProgram(python + "/bin/python", {"-c", R"(
import json, sys
from safetensors import safe_open
with safe_open(sys.argv[1], "np") as file:
    own = [name for name in file.keys() if not name.startswith(("first_moment.", "second_moment.", "state."))]
    squares = sum(float((file.get_tensor(name).astype("float64") ** 2).sum()) for name in own)
    print(json.dumps({"step": file.metadata()["step"], "norm": squares ** 0.5,
                      "shape": file.get_tensor("block.1.attention.q.weight").shape,
                      "moments": all("first_moment." + name in file.keys() for name in own)}))
)",
                                                               run.file("checkpoint/step-3.safetensors")})
                           .wait();
  ASSERT_EQ(read.code, 0) << read.err;
  const auto found = nlohmann::json::parse(read.out);
  EXPECT_EQ(found["step"], "3");
  EXPECT_EQ(found["shape"], (nlohmann::json{8, 8}));
  EXPECT_EQ(found["moments"], true);
  const double logged = std::stod(column(run.steps(), "weight_norm").back());
  EXPECT_NEAR(found["norm"].get<double>(), logged, 1e-12 * logged);
}

}  // namespace
}  // namespace gradflow::testing
