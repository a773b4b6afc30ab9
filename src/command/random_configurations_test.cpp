// Configurations drawn from the schema: whatever is accepted builds and takes a step.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command/experiment.h"
#include "config/fields.h"
#include "config/load.h"
#include "core/files.h"
#include "testing/mutations.h"
#include "testing/temporary_folder.h"
#include "testing/torture.h"

namespace gradflow {
namespace {

using testing::Dice;

/// A value that the key's schema allows, of a size that trains in a moment.
Json allowed_value(const std::string& key, const Json& schema, Dice& dice) {
  static const std::map<std::string, std::vector<Json>> small = {
      {"model.depth", {1, 2, 3, 6}},
      {"model.width", {4, 8, 12}},
      {"model.heads", {1, 2, 4}},
      {"model.ffn_width", {1, 8, 20}},
      {"data.vocabulary", {2, 3, 16, 256}},
      {"data.context", {1, 2, 3, 8}},
      {"data.inputs", {1, 5, 32}},
      {"data.side", {4, 8}},
      {"data.classes", {2, 10}},
      {"data.successors", {1, 2, 4}},
      {"data.padding_fraction", {0, 0.25, 0.5}},
      {"train.steps", {1, 2}},
      {"train.batch", {1, 2, 5}},
      {"train.accumulation", {1, 2}},
      {"train.evaluate_batches", {1, 2}},
      {"compute.threads", {1}},
      {"compute.device", {"cpu", "auto"}},
      {"data.files", {Json::array()}},
      {"name", {"a"}},
  };
  if (const auto found = small.find(key); found != small.end()) return dice.of(found->second);
  if (schema.contains("enum")) return dice.of(schema["enum"]);
  const std::string type = schema.contains("type") && schema["type"].is_string() ? schema["type"] : Json("");
  if (type == "boolean") return dice.one_in(2);
  const double least = schema.value("minimum", schema.value("exclusiveMinimum", -2.0));
  const double most = schema.value("maximum", schema.value("exclusiveMaximum", 4.0));
  if (type == "integer")
    return static_cast<std::int64_t>(std::max(least, 0.0)) + static_cast<std::int64_t>(dice.below(4));
  if (type == "number") {
    const double share = static_cast<double>(1 + dice.below(8)) / 10;
    return std::max(least, -1.0) + share * (std::min(most, 2.0) - std::max(least, -1.0));
  }
  return nullptr;  // mixtures: left at their default
}

TEST(RandomConfigurations, WhatIsAcceptedBuildsAndTakesAStep) {
  const TemporaryFolder folder;
  Dice dice(testing::torture_seed(), "valid configurations");
  const std::size_t wanted = testing::rounds(25, 1000);
  std::size_t trained = 0, diverged = 0, refused = 0;
  while (trained < wanted) {
    ASSERT_LT(refused, 200 * wanted) << "hardly any is accepted";
    Json config = Json::object();
    config["model"] = {{"depth", 2}, {"width", 8}, {"heads", 2}};
    config["data"] = {{"vocabulary", 16}, {"context", 8}, {"side", 4}};
    config["train"] = {{"steps", 1}, {"batch", 2}};
    for (std::size_t changes = 1 + dice.below(8); changes > 0; --changes) {
      const Field& field = *dice.of(fields());
      const Json value = allowed_value(std::string(field.key()), field.schema(), dice);
      if (value.is_null()) continue;
      std::string pointer = "/" + std::string(field.key());
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      config[Json::json_pointer(pointer)] = value;
    }
    if (dice.one_in(4)) {
      config["model"]["stack"] = "mlp";
      config["data"]["task"] = dice.of(std::vector<Json>{"teacher", "clusters", "identity", "cifar10"});
    } else if (dice.one_in(6)) {
      config["model"]["stack"] = "resnet";
      config["data"]["task"] = "cifar10";
      config["model"]["depth"] = 3;
    }
    const std::string file = folder / "config.json";
    write_file_atomically(file, config.dump(2));
    std::optional<Prepared> prepared;
    try {
      prepared.emplace(prepare(file));
    } catch (const Error&) {
      ++refused;
      continue;
    }
    std::ostringstream terminal;
    try {
      const ExperimentResult result =
          run_experiment(*prepared, {.out = folder / "run", .overwrite = true, .quiet = true}, terminal);
      EXPECT_TRUE(result.exit == Exit::done || result.exit == Exit::diverged) << config.dump();
      if (result.exit == Exit::diverged) ++diverged;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << config.dump();
    }
    ++trained;
  }
  std::cout << "[ torture  ] valid configurations that took a step: " << trained << " (" << diverged
            << " stopped at a value that is not finite); refused on the way: " << refused << "\n";
}

}  // namespace
}  // namespace gradflow
