#include "config/compatibility.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.h"

namespace gradflow {
namespace {

template <class Choice>
bool among(const std::vector<Choice>& allowed, Choice choice) {
  return std::find(allowed.begin(), allowed.end(), choice) != allowed.end();
}

TEST(Compatibility, PlacementsWithTheirOwnSumTakeAddOnly) {
  for (const Placement placement : {Placement::deepnorm, Placement::keel, Placement::admin, Placement::resi_dual,
                                    Placement::b2t, Placement::hybrid_norm})
    EXPECT_EQ(allowed_residuals(StackKind::transformer, placement), std::vector<Residual>{Residual::add})
        << name_of(placement);
  EXPECT_EQ(allowed_residuals(StackKind::transformer, Placement::pre).size(), 9u);
}

TEST(Compatibility, PlacementsThatAreNothingWithoutANormRefuseNone) {
  for (const Placement placement : {Placement::deepnorm, Placement::sub_ln, Placement::keel})
    EXPECT_FALSE(among(allowed_norms(StackKind::transformer, placement), Norm::none)) << name_of(placement);
  for (const Placement placement : {Placement::none, Placement::pre, Placement::post})
    EXPECT_TRUE(among(allowed_norms(StackKind::transformer, placement), Norm::none)) << name_of(placement);
}

TEST(Compatibility, MlpAndResnetTakePreAndPostWithFiveForms) {
  const std::vector<Residual> forms{Residual::add, Residual::none, Residual::scaled, Residual::rezero, Residual::sqrt2};
  for (const StackKind stack : {StackKind::mlp, StackKind::resnet}) {
    EXPECT_EQ(allowed_placements(stack), (std::vector<Placement>{Placement::pre, Placement::post}));
    EXPECT_EQ(allowed_residuals(stack, Placement::pre), forms);
  }
}

TEST(Compatibility, EveryStackOfTheIndependentImplementationIsAllowed) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator("src/testing/golden")) {
    if (entry.path().extension() != ".json") continue;
    const auto config = nlohmann::json::parse(read_file(entry.path().string())).at("config");
    const auto stack = choice_named<StackKind>(config.value("stack", "transformer")).value();
    const auto placement = choice_named<Placement>(config.at("placement").get<std::string>()).value();
    const auto residual = choice_named<Residual>(config.at("residual").get<std::string>()).value();
    const auto norm = choice_named<Norm>(config.at("norm").get<std::string>()).value();
    EXPECT_TRUE(among(allowed_placements(stack), placement)) << entry.path();
    EXPECT_TRUE(among(allowed_residuals(stack, placement), residual)) << entry.path();
    EXPECT_TRUE(among(allowed_norms(stack, placement), norm)) << entry.path();
    ++cases;
  }
  EXPECT_GT(cases, 80);
}

TEST(Compatibility, TheTableHasARowForEachStackAndPlacement) {
  const std::string table = compatibility_table();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2 + 16 + 2 + 2);
  EXPECT_NE(table.find("| `transformer` | `deepnorm` | add | all but none | Wang et al. 2022 (DeepNet) |\n"),
            std::string::npos);
  EXPECT_NE(table.find("| `resnet` | `pre` | add, none, scaled, rezero, sqrt2 | all but center, dyt |"),
            std::string::npos);
}

}  // namespace
}  // namespace gradflow
