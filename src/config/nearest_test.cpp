#include "config/nearest.h"

#include <gtest/gtest.h>

#include "config/fields.h"

namespace gradflow {
namespace {

using Keys = std::vector<std::string_view>;

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("warmup", "warmup"), 0u);
  EXPECT_EQ(edit_distance("warm_up", "warmup"), 1u);
  EXPECT_EQ(edit_distance("dpeth", "depth"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("Depth", "depth"), 0u);
  EXPECT_EQ(edit_distance(std::string(100'000, 'x'), "depth"), 64u) << "long words cost no time";
}

TEST(NearestKeys, FindSpellingsLevelsAndOtherNames) {
  EXPECT_EQ(nearest_keys("train.warm_up", false), Keys{"train.warmup"});
  EXPECT_EQ(nearest_keys("model.dpth", false), Keys{"model.depth"});
  EXPECT_EQ(nearest_keys("depth", false), Keys{"model.depth"});
  EXPECT_EQ(nearest_keys("train.depth", false), Keys{"model.depth"});
  EXPECT_EQ(nearest_keys("model.seed", false), (Keys{"seed", "data.seed"}));
  EXPECT_EQ(nearest_keys("lr", false), Keys{"train.learning_rate"});
  EXPECT_EQ(nearest_keys("model.n_layers", false), Keys{"model.depth"});
  EXPECT_EQ(nearest_keys("accum", false), Keys{"train.accumulation"});
  EXPECT_EQ(nearest_keys("modle", true), Keys{"model"});
  EXPECT_EQ(nearest_keys("spikes", true), Keys{"record.spikes"});
}

TEST(NearestKeys, OtherNamesAreNoKeysAndMeanOneKey) {
  std::vector<std::string_view> names;
  for (const auto& field : fields())
    for (const std::string_view name : field->also_called()) {
      for (const auto& other : fields()) EXPECT_NE(last_component(other->key()), name) << field->key();
      EXPECT_EQ(std::count(names.begin(), names.end(), name), 0) << name;
      names.push_back(name);
    }
}

TEST(DidYouMean, ShowsHowAKeyAtAnotherLevelIsWritten) {
  EXPECT_EQ(did_you_mean_in_file("train.warm_up", false), "did you mean train.warmup?");
  EXPECT_EQ(did_you_mean_in_file("depth", false), "did you mean model.depth, written \"model\": {\"depth\": …}?");
  EXPECT_EQ(did_you_mean_in_file("record.window", false),
            "did you mean record.spikes.window, written \"record\": {\"spikes\": {\"window\": …}}?");
  EXPECT_EQ(did_you_mean_in_file("model.seed", false), "did you mean seed or data.seed?");
}

}  // namespace
}  // namespace gradflow
