// Configurations that no person would write: whatever the text, the answer is a configuration or an Error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/fields.h"
#include "config/grid.h"
#include "config/load.h"
#include "config/resolved.h"
#include "core/error.h"
#include "core/files.h"
#include "testing/mutations.h"
#include "testing/temporary_folder.h"
#include "testing/torture.h"

namespace gradflow {
namespace {

using testing::Dice;

/// Whether it is accepted; else every fault must name what is wrong and what to do.
bool accepted(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    const Config config = parse_config(text, "fuzz.json", overrides);
    // What is accepted can be written down and read again.
    const std::string written = to_json(config).dump();
    EXPECT_EQ(to_json(parse_config(written, "fuzz.json")).dump(), written) << text;
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(error.lines().empty());
    for (const std::string& line : error.lines()) EXPECT_NE(line.find("; "), std::string::npos) << line << "\n" << text;
    return false;
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> texts = {"{}", to_json(Config{}).dump(2), "// a comment\n{/* one */ \"seed\": 1e2}"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator("configs"))
    if (entry.path().extension() == ".json") texts.push_back(read_file(entry.path().string()));
  return texts;
}

TEST(ConfigFuzz, AccidentsInTheText) {
  Dice dice(testing::torture_seed(), "config text");
  const std::vector<std::string> texts = seeds();
  const std::size_t count = testing::rounds(1500, 100'000);
  std::size_t good = 0;
  for (std::size_t i = 0; i < count; ++i) good += accepted(testing::mutated(dice.of(texts), dice));
  EXPECT_LT(good, count);
  std::cout << "[ torture  ] configuration texts: " << count << ", of which accepted: " << good << "\n";
}

TEST(ConfigFuzz, AccidentsInGrids) {
  Dice dice(testing::torture_seed(), "grid text");
  std::vector<std::string> texts = {R"({"axes": {"seed": [1, 2]}})"};
  for (const auto& entry : std::filesystem::directory_iterator("configs/grids"))
    texts.push_back(read_file(entry.path().string()));
  const TemporaryFolder folder;
  const std::string path = folder / "grid.json";
  const std::size_t count = testing::rounds(500, 20'000);
  std::size_t good = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = testing::mutated(dice.of(texts), dice);
    std::ofstream(path) << text;  // unsynced: there are many
    try {
      const Grid grid(path);
      ++good;
    } catch (const Error& error) {
      EXPECT_FALSE(error.lines().empty()) << text;
    }
  }
  EXPECT_GT(good, 0u);
  EXPECT_LT(good, count);
  std::cout << "[ torture  ] grid texts: " << count << ", of which accepted: " << good << "\n";
}

TEST(ConfigFuzz, DeepAndLongTexts) {
  for (const std::size_t depth : {100, 100'000})
    for (const std::string open : {"[", "{\"a\":", "{\"model\":"}) {
      std::string text;
      for (std::size_t i = 0; i < depth; ++i) text += open;
      EXPECT_FALSE(accepted(text)) << depth;
    }
  EXPECT_FALSE(accepted("{\"" + std::string(1'000'000, 'a') + "\": 1}"));
  EXPECT_FALSE(accepted("{\"seed\": " + std::string(100'000, '9') + "}"));
}

TEST(ConfigFuzz, AccidentsInOverrides) {
  Dice dice(testing::torture_seed(), "config overrides");
  const std::size_t count = testing::rounds(1500, 100'000);
  for (std::size_t i = 0; i < count; ++i) {
    const Field& field = *dice.of(fields());
    const std::string text = std::string(field.key()) + '=' + field.value(Config{}).dump();
    accepted("{}", {testing::mutated(text, dice)});
  }
  std::cout << "[ torture  ] overrides: " << count << "\n";
}

/// A value that the key's schema excludes.
Json refused_value(const Json& schema, Dice& dice) {
  const Json wrong_types[] = {
      Json::object(), Json::object({{"a", 1}}), Json::array({Json::array()}), "1e-3", "", true, 3.7, Json()};
  std::vector<Json> values;
  const auto type = schema.contains("type") && schema["type"].is_string() ? schema["type"].get<std::string>() : "";
  if (schema.contains("enum")) {
    for (const Json& word : schema["enum"])
      if (word.is_string()) values.push_back(word.get<std::string>() + "s");
    values.insert(values.end(), {1, Json::array(), "none of these", Json::object()});
  } else if (type == "integer" || type == "number") {
    for (const char* key : {"minimum", "exclusiveMinimum"})
      if (schema.contains(key)) values.insert(values.end(), {schema[key].get<double>() - 1, -1e300});
    if (schema.contains("exclusiveMinimum")) values.push_back(schema["exclusiveMinimum"]);
    if (schema.contains("exclusiveMaximum")) values.push_back(schema["exclusiveMaximum"]);
    if (schema.contains("maximum")) values.push_back(schema["maximum"].get<double>() * 2 + 1);
    values.insert(values.end(), {"1e-3", true, Json::array(), Json::object(), "many"});
    if (type == "integer") values.insert(values.end(), {0.5, 1e30, 3.7});
  } else if (type == "boolean") {
    values = {1, 0, "true", Json::array(), Json::object(), "yes"};
  } else {
    // Texts, lists and mixtures: an object is never right.
    values = {wrong_types[0], wrong_types[1], Json::array({Json::object()})};
  }
  return dice.of(values);
}

TEST(ConfigFuzz, WhatTheSchemaExcludesIsRefusedUnderItsKey) {
  Dice dice(testing::torture_seed(), "invalid configurations");
  const std::size_t count = testing::rounds(1000, 10'000);
  Json good = to_json(Config{});
  good["name"] = "good";  // written out it may not be empty
  EXPECT_NO_THROW(parse_config(good.dump(), "fuzz.json"));
  for (std::size_t i = 0; i < count; ++i) {
    Json config = good;
    std::vector<std::string> wrong;
    for (std::size_t faults = 1 + dice.below(3); faults > 0; --faults) {
      const Field& field = *dice.of(fields());
      std::string pointer = "/" + std::string(field.key());
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      if (dice.one_in(5)) {
        config[Json::json_pointer(pointer + "s")] = 1;
        wrong.push_back(std::string(field.key()) + 's');
      } else {
        config[Json::json_pointer(pointer)] = refused_value(field.schema(), dice);
        wrong.emplace_back(field.key());
      }
    }
    try {
      parse_config(config.dump(), "fuzz.json");
      ADD_FAILURE() << "accepted: " << config.dump();
    } catch (const Error& error) {
      for (const std::string& key : wrong)
        EXPECT_TRUE(std::any_of(error.lines().begin(), error.lines().end(),
                                [&](const std::string& line) { return line.find(": " + key) != std::string::npos; }))
            << key << " is not named in\n"
            << error.what();
    }
  }
  std::cout << "[ torture  ] invalid configurations refused: " << count << "\n";
}

}  // namespace
}  // namespace gradflow
