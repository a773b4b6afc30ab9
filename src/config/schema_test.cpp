#include "config/schema.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/fields.h"

namespace gradflow {
namespace {

const Json& schema_of(const Json& root, std::string_view key) {
  const Json* at = &root;
  while (true) {
    const std::size_t dot = key.find('.');
    at = &at->at("properties").at(std::string(key.substr(0, dot)));
    if (dot == std::string_view::npos) return *at;
    key.remove_prefix(dot + 1);
  }
}

TEST(Schema, ListsEveryKeyWithMeaningAndDefault) {
  const Json root = schema();
  EXPECT_EQ(root.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
  for (const auto& field : fields()) {
    const Json& value = schema_of(root, field->key());
    EXPECT_TRUE(value.contains("description")) << field->key();
    EXPECT_EQ(value.contains("default"), field->default_words().empty()) << field->key();
    EXPECT_TRUE(value.contains("type") || value.contains("enum") || value.contains("anyOf")) << field->key();
  }
}

TEST(Schema, AllowsNoOtherKeysButDerived) {
  const Json root = schema();
  EXPECT_EQ(root.at("additionalProperties"), false);
  for (const std::string_view group : field_groups()) {
    EXPECT_EQ(schema_of(root, group).at("additionalProperties"), false) << group;
    EXPECT_EQ(schema_of(root, group).at("type"), "object") << group;
  }
  EXPECT_TRUE(root.at("properties").contains("derived"));
  EXPECT_EQ(root.at("properties").size(), 9u) << "name, seed, six groups, derived";
}

TEST(Schema, SaysTypesRangesAndChoices) {
  const Json root = schema();
  EXPECT_EQ(schema_of(root, "model.depth").at("type"), "integer");
  EXPECT_EQ(schema_of(root, "model.depth").at("minimum"), 1);
  EXPECT_EQ(schema_of(root, "model.depth").at("default"), 12);
  EXPECT_EQ(schema_of(root, "model.norm_epsilon").at("exclusiveMinimum"), 0);
  EXPECT_EQ(schema_of(root, "model.dropout").at("exclusiveMaximum"), 1);
  EXPECT_EQ(schema_of(root, "model.placement").at("enum").size(), 16u);
  EXPECT_EQ(schema_of(root, "model.causal").at("type"), "boolean");
  EXPECT_EQ(schema_of(root, "model.final_norm").at("anyOf"),
            Json::parse(R"([{"type": "boolean"}, {"const": "auto"}])"));
  EXPECT_EQ(schema_of(root, "train.clip_norm").at("anyOf"),
            Json::parse(R"([{"type": "number", "exclusiveMinimum": 0}, {"const": null}])"));
  EXPECT_EQ(schema_of(root, "train.betas").at("minItems"), 2);
  EXPECT_EQ(schema_of(root, "data.files").at("items"), Json::parse(R"({"type": "string"})"));
  EXPECT_EQ(schema_of(root, "record.spikes.window").at("type"), "integer");
}

TEST(KeyTable, HasARowForEachKey) {
  const std::string table = key_table();
  for (const auto& field : fields())
    EXPECT_NE(table.find("\n| `" + std::string(field->key()) + "` | "), std::string::npos) << field->key();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), static_cast<std::ptrdiff_t>(fields().size()) + 2);
  EXPECT_NE(table.find("| `model.ffn_width` | whole number | 4·width | 1 to 1000000 | "), std::string::npos);
  EXPECT_NE(table.find("| `train.clip_norm` | number or null | `null` | greater than 0 | "), std::string::npos);
}

}  // namespace
}  // namespace gradflow
