// Checkpoints that another version wrote: what stands in the run folder outlives a version that cannot read it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "config/resolved.h"
#include "testing/experiment.h"
#include "train/checkpoint.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using testing::Words;

class CheckpointForm : public testing::ExperimentTest {
 protected:
  struct Tensor {
    TensorPlace place;
    std::vector<std::byte> bytes;
  };
  using Change = std::function<void(Metadata&, std::vector<Tensor>&)>;

  /// Writes a checkpoint once more, changed, with a checksum that fits.
  void rewrite(const std::string& file, const Change& change) const {
    Metadata metadata;
    std::vector<Tensor> tensors;
    {
      const SafetensorsFile there(file);
      metadata = there.metadata();
      for (const TensorPlace& place : there.tensors()) {
        tensors.push_back({place, std::vector<std::byte>(place.end - place.begin)});
        there.read(place, tensors.back().bytes);
      }
    }
    metadata.erase("checksum");
    change(metadata, tensors);
    std::vector<TensorContent> contents;
    for (const Tensor& tensor : tensors)
      contents.push_back({tensor.place.name, tensor.place.type, tensor.place.shape, tensor.bytes});
    write_safetensors(file, metadata, contents);
  }
  /// The row of an observer without its last number.
  static Change shortened(const std::string& row) {
    return [row](Metadata&, std::vector<Tensor>& tensors) {
      const auto found = std::find_if(tensors.begin(), tensors.end(),
                                      [&](const Tensor& tensor) { return tensor.place.name == "state." + row; });
      ASSERT_NE(found, tensors.end()) << row;
      found->bytes.resize(found->bytes.size() - sizeof(double));
      --found->place.shape.at(0);
    };
  }
  std::string file_of(const std::string& name, std::int64_t step) const {
    return path(name) + "/checkpoint/step-" + std::to_string(step) + ".safetensors";
  }

  /// Every checkpoint of an interrupted run is changed; resuming it must be refused and leave it as it was, so that,
  /// changed back, it ends like a run that never was interrupted.
  void expect_refused(const std::string& name, const Change& change, const std::string& message) {
    SCOPED_TRACE(name);
    run_until(17, name, overrides);
    fs::copy(path(name) + "/checkpoint", path(name) + "/kept", fs::copy_options::recursive);
    for (const std::int64_t step : {15, 17}) rewrite(file_of(name, step), change);
    const auto before = tables(name);
    const std::string config = read_file(path(name) + "/config.json"),
                      manifest = read_file(path(name) + "/manifest.json");
    EXPECT_THAT(
        error_of(name, overrides, {.resume = true}),
        AllOf(StartsWith(file_of(name, 17) + ": "), HasSubstr(message),
              HasSubstr(
                  "; go on with the version that wrote it, or start again (remove the folder, or run --overwrite)")));
    EXPECT_THAT(checkpoints(name), ElementsAre("step-15.safetensors", "step-17.safetensors"));
    EXPECT_EQ(tables(name), before);
    EXPECT_EQ(read_file(path(name) + "/config.json"), config);
    EXPECT_EQ(read_file(path(name) + "/manifest.json"), manifest);

    fs::remove_all(path(name) + "/checkpoint");
    fs::rename(path(name) + "/kept", path(name) + "/checkpoint");
    run(name, overrides, {.resume = true});
    EXPECT_EQ(json(name, "manifest.json")["resumed"].back()["step"], 17);
    expect_same(name, "whole", 24);
  }

  const Words overrides = {"checkpoint.every=5", R"(record.quantities=["standard", "lesion"])"};
};

TEST_F(CheckpointForm, AnotherVersionWordIsRefusedAndNothingIsChanged) {
  run("whole", overrides);
  expect_refused(
      "older", [](Metadata& metadata, std::vector<Tensor>&) { metadata.at("format") = "gradflow 1"; },
      R"(has the format "gradflow 1" where this version has "gradflow 2")");
}

TEST_F(CheckpointForm, AnotherFormOfAStateIsRefusedAndNothingIsChanged) {
  run("whole", overrides);
  for (const char* row : {"recorder", "spikes", "quantities", "account"})
    expect_refused(row, shortened(row), "has another form than this version writes");
  expect_refused(
      "metadata", [](Metadata& metadata, std::vector<Tensor>&) { metadata.erase("updates"); },
      "has another form than this version writes");
}

TEST_F(CheckpointForm, TheOneBeforeServesWhereItIsOfThisForm) {
  run("whole", overrides);
  run_until(17, "run", overrides);
  rewrite(file_of("run", 17), shortened("quantities"));
  run("run", overrides, {.resume = true});
  EXPECT_THAT(said_, HasSubstr("going on from the checkpoint before, of step 15"));
  EXPECT_TRUE(fs::exists(file_of("run", 17) + ".rejected"));
  expect_same("run", "whole", 24);
}

TEST_F(CheckpointForm, ADamagedOneBeforeAnotherFormIsNotSetAside) {
  run_until(17, "run", overrides);
  fs::resize_file(file_of("run", 17), fs::file_size(file_of("run", 17)) / 2);
  rewrite(file_of("run", 15), shortened("recorder"));
  EXPECT_THAT(error_of("run", overrides, {.resume = true}), StartsWith(file_of("run", 15) + ": has another form"));
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-15.safetensors", "step-17.safetensors"));
}

TEST_F(CheckpointForm, AChangedFormNeedsAnotherVersionWord) {
  // What stands in the rows of a run of this configuration. Where a count changes, raise `format_version` in
  // train/checkpoint.cpp, and this with it.
  run("run", {R"(record.quantities=["standard", "lesion"])", "train.steps=2", "dropout=0"});
  const SafetensorsFile file(file_of("run", 2));
  std::map<std::string, std::int64_t> numbers;
  for (const TensorPlace& place : file.tensors())
    if (place.name.starts_with("state.")) numbers[place.name] = place.shape.at(0);
  EXPECT_EQ(file.metadata().at("format"), "gradflow 2");
  EXPECT_THAT(numbers, ElementsAre(Pair("state.account", 15), Pair("state.quantities", 3), Pair("state.recorder", 512),
                                   Pair("state.spikes", 1812)));
}

TEST_F(CheckpointForm, SgdHasOneMomentOrNoneAndTakesNoMemoryForOthers) {
  for (const double momentum : {0.9, 0.0}) {
    const std::string name = momentum > 0 ? "momentum" : "plain";
    Config config;
    config.name = "sgd";
    config.train.optimizer = OptimizerKind::sgd;
    config.train.momentum = momentum;
    config = resolved(config);
    Stack stack(config, at::kCPU);
    Checkpoints checkpoints(path(name), config, stack.store(), {}, [](std::string_view) {});
    checkpoints.save({.step = 1, .tokens = 1, .updates = 1});
    const SafetensorsFile file(file_of(name, 1));
    for (const TensorPlace& place : file.tensors()) {
      EXPECT_FALSE(place.name.starts_with("second_moment.")) << place.name;
      EXPECT_FALSE(momentum == 0 && place.name.starts_with("first_moment.")) << place.name;
    }
    // Pages that nobody writes are no memory: what stands there is left alone.
    stack.store().first_moment().fill_(7);
    stack.store().second_moment().fill_(7);
    ASSERT_TRUE(checkpoints.restore().has_value());
    EXPECT_EQ(stack.store().first_moment()[0].item<double>(), momentum > 0 ? 0 : 7);
    EXPECT_TRUE(stack.store().second_moment().eq(7).all().item<bool>());
  }
}

}  // namespace
}  // namespace gradflow
