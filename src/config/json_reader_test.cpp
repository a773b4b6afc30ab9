#include "config/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error.h"

namespace gradflow {
namespace {

using Kind = JsonValue::Kind;

/// The value, or what is wrong with the text.
JsonValue read(std::string_view text) {
  Faults faults;
  JsonValue value = read_json(text, "a.json", faults);
  faults.raise();
  return value;
}

std::string fault(std::string_view text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(JsonReader, RemembersLinesDigitsAndNesting) {
  const JsonValue root = read("{\n  \"a\": 12,\n  \"b\":\n    [true, null,\n     \"x\"],\n  \"c\": {\"d\": 1.50}\n}\n");
  ASSERT_EQ(root.kind, Kind::object);
  EXPECT_EQ(root.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(root.elements[0].line, 2);
  EXPECT_EQ(root.elements[0].text, "12");
  EXPECT_EQ(root.elements[1].line, 3) << "the line of the key";
  ASSERT_EQ(root.elements[1].elements.size(), 3u);
  EXPECT_EQ(root.elements[1].elements[0].kind, Kind::boolean);
  EXPECT_TRUE(root.elements[1].elements[0].boolean);
  EXPECT_EQ(root.elements[1].elements[1].kind, Kind::null);
  EXPECT_EQ(root.elements[1].elements[2].text, "x");
  EXPECT_EQ(root.elements[1].elements[2].line, 5);
  EXPECT_EQ(root.elements[2].elements[0].text, "1.50");
  EXPECT_EQ(root.elements[2].elements[0].number, 1.5);
}

TEST(JsonReader, LineOfANumberIsItsOwnWhenALineBreakFollows) {
  EXPECT_EQ(read("[1\n,2\n]").elements[0].line, 1);
  EXPECT_EQ(read("[1\n,2\n]").elements[1].line, 2);
}

TEST(JsonReader, KeepsIntegersExact) {
  EXPECT_EQ(read("9007199254740993").text, "9007199254740993");
  EXPECT_EQ(read("9223372036854775807").text, "9223372036854775807");
  EXPECT_EQ(read("123456789012345678901234567890").text, "123456789012345678901234567890");
}

TEST(JsonReader, AcceptsCommentsAndAByteOrderMark) {
  EXPECT_EQ(read("\xEF\xBB\xBF// first\n{/* one\ntwo */ \"a\": 1 // last\n}").elements[0].line, 3);
}

TEST(JsonReader, MarksNumbersBeyondDoubleAndReadsOn) {
  const JsonValue root = read("[1e999, -1e400, 2, 1e999]");
  ASSERT_EQ(root.elements.size(), 4u);
  EXPECT_TRUE(std::isinf(root.elements[0].number));
  EXPECT_EQ(root.elements[0].text, "1e999");
  EXPECT_EQ(root.elements[1].text, "-1e400");
  EXPECT_EQ(root.elements[2].number, 2);
  EXPECT_EQ(root.elements[3].text, "1e999");
  EXPECT_EQ(read("1e999").text, "1e999");
  EXPECT_EQ(read("[1e-999]").elements[0].number, 0) << "too small is zero, not an error";
}

TEST(JsonReader, NamesBothLinesOfARepeatedKey) {
  EXPECT_EQ(fault("{\"m\": {\n\"a\": 1,\n\n\"a\": 2}}"),
            "a.json:4: m.a: repeated, first written on line 2; keep one of the two");
  EXPECT_EQ(fault("{\"a\": {\"x\": 1}, \"b\": {\"x\": 1}}"), "none") << "equal names in different objects";
}

TEST(JsonReader, SaysWhereATextIsNotJson) {
  EXPECT_EQ(fault("{\"a\": 1,\n \"b\": 2, // note\n}"),
            "a.json:2: trailing comma (column 8); remove it (comments are accepted, trailing commas are not)");
  EXPECT_EQ(fault("[1, /* x */ ]"),
            "a.json:1: trailing comma (column 3); remove it (comments are accepted, trailing commas are not)");
  EXPECT_EQ(fault("{\"β\": 1, }"),
            "a.json:1: trailing comma (column 8); remove it (comments are accepted, trailing commas are not)");
  EXPECT_EQ(fault(""), "a.json:1: the file is empty (column 1); write {} for a run with every default");
  EXPECT_EQ(fault("// only this\n"), "a.json:2: the file is empty (column 1); write {} for a run with every default");
  EXPECT_EQ(fault("{\"a\":\n"), "a.json:2: the file ends too early (column 1); close every bracket, text and comment");
  EXPECT_EQ(
      fault("{\"a\": NaN}"),
      "a.json:1: neither a number nor true, false, null or a text (column 7); write numbers as 0.001 or 1e-3, texts "
      "and keys in double quotes");
  EXPECT_EQ(
      fault("{\"a\": 1\n \"b\": 2}"),
      "a.json:2: neither a comma nor a closing bracket behind a value (column 4); write a comma between two values");
  EXPECT_EQ(
      fault("{} x"),
      "a.json:1: neither a number nor true, false, null or a text (column 4); write numbers as 0.001 or 1e-3, texts "
      "and keys in double quotes");
  EXPECT_EQ(fault("{}}"), "a.json:1: something behind the end of the configuration (column 3); remove it");
  EXPECT_EQ(fault("{,}"), "a.json:1: unexpected ',' (column 2); write a key in double quotes here");
  EXPECT_EQ(fault("{\"a\": \"\xff\"}"), "a.json:1: not UTF-8 (column 8); save the file as UTF-8");
  EXPECT_EQ(fault("// \xff\n{}"), "a.json:1: not UTF-8 (column 4); save the file as UTF-8");
  EXPECT_EQ(fault(std::string_view("{}\0{", 4)), "a.json:1: a zero byte (column 3); save the file as plain text");
}

TEST(JsonReader, RefusesDeepNestingInsteadOfOverflowingTheStack) {
  const std::string deep(1'000'000, '[');
  EXPECT_EQ(fault(deep), "a.json:1: more than 100 levels of brackets (column 101); write a flatter file");
  std::string allowed = std::string(100, '[') + std::string(100, ']');
  EXPECT_EQ(fault(allowed), "none");
}

TEST(JsonReader, ValuesAreWrittenAsTheyWereRead) {
  Faults none;
  const JsonValue value = read_json(R"({"a": [1e-3, 12, null, true], "b": {"c": "x\"y\n"}, "d": {}})", "a.json", none);
  EXPECT_EQ(json_text(value), R"({"a": [1e-3, 12, null, true], "b": {"c": "x\"y\n"}, "d": {}})");
  EXPECT_EQ(option_text(value.elements[0]), "[1e-3, 12, null, true]");
  EXPECT_EQ(option_text(JsonValue::of_string("post")), "post");
}

TEST(JsonReader, AnyBytesGiveAValueOrAnError) {
  const std::string_view pieces[] = {
      "{", "}",    "[",    "]",     ",",  ":",  "\"", "\\",           "/",    "*",     "\n", "1",      "-", ".", "e",
      "9", "true", "null", "\"a\"", "//", "/*", "*/", "\xEF\xBB\xBF", "\xff", "1e999", " ",  "\"\\u12"};
  std::mt19937 random(1);
  int values = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::size_t n = random() % 12; n > 0; --n) text += pieces[random() % std::size(pieces)];
    const std::string said = fault(text);
    values += said == "none";
    EXPECT_TRUE(said == "none" || said.starts_with("a.json:")) << text << " -> " << said;
  }
  EXPECT_GT(values, 100) << "the mixture must contain JSON, too";
}

}  // namespace
}  // namespace gradflow
