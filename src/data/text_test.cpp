#include "data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "data/utf8.h"
#include "testing/temporary_folder.h"

namespace gradflow {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Text : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  static DataConfig data_of(std::vector<std::string> files, std::int64_t context, double validation_fraction = 0) {
    DataConfig data;
    data.task = Task::text;
    data.files = std::move(files);
    data.context = context;
    data.validation_fraction = validation_fraction;
    return data;
  }

  static std::string error_of(const DataConfig& data, bool evaluates = false) {
    try {
      TextTask(data, evaluates);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
};

TEST_F(Text, TokensAreTheBytesAsTheyStand) {
  const std::string content = "a\r\nb\rc\n\xFF";
  const TextTask task(data_of({file("a", content)}, 7), false);
  const auto [inputs, targets] = draw_sequence(task, 1, Part::training, 0, 7);  // the only window
  for (std::size_t t = 0; t < 7; ++t) {
    EXPECT_EQ(inputs[t], static_cast<unsigned char>(content[t]));
    EXPECT_EQ(targets[t], static_cast<unsigned char>(content[t + 1]));
  }
  EXPECT_EQ(task.facts().vocabulary, 256);
  EXPECT_EQ(task.facts().text_bytes, 8);
  EXPECT_EQ(task.facts().text_tokens, 8);
  EXPECT_EQ(task.facts().distinct_tokens, 6);
}

TEST_F(Text, CharactersAreNumberedInTheirOrder) {
  const TextTask task(
      [&] {
        DataConfig data = data_of({file("a", "b\u00e9a\u20ac\U0001F600b")}, 5);
        data.tokenizer = Tokenizer::character;
        return data;
      }(),
      false);
  const auto [inputs, targets] = draw_sequence(task, 1, Part::training, 0, 5);
  EXPECT_EQ(inputs, (std::vector<std::int64_t>{1, 2, 0, 3, 4}));
  EXPECT_EQ(targets, (std::vector<std::int64_t>{2, 0, 3, 4, 1}));
  EXPECT_EQ(task.facts().vocabulary, 5);
  EXPECT_EQ(task.facts().text_tokens, 6);
  EXPECT_EQ(task.facts().text_bytes, 12);
}

TEST_F(Text, ByteOrderMarksAreNoTokensAndFilesFollowOneAnother) {
  for (const Tokenizer tokenizer : {Tokenizer::byte, Tokenizer::character}) {
    DataConfig data = data_of({file("a", "\xEF\xBB\xBFxy"), file("b", "\xEF\xBB\xBFzx")}, 3);
    data.tokenizer = tokenizer;
    const TextTask task(data, false);
    EXPECT_EQ(task.facts().text_tokens, 4);
    EXPECT_EQ(task.facts().text_bytes, 10);
    const auto [inputs, targets] = draw_sequence(task, 1, Part::training, 0, 3);
    const std::int64_t x = tokenizer == Tokenizer::byte ? 'x' : 0;
    EXPECT_EQ(inputs, (std::vector<std::int64_t>{x, x + 1, x + 2}));
    EXPECT_EQ(targets, (std::vector<std::int64_t>{x + 1, x + 2, x}));
  }
}

TEST_F(Text, UnigramEntropyIsThatOfTheTrainingPart) {
  const std::string training = std::string(10, 'a') + std::string(30, 'b') + std::string(40, 'c');
  const TextTask task(data_of({file("a", training + std::string(20, 'd'))}, 10, 0.2), true);
  EXPECT_NEAR(*task.facts().unigram_entropy, -(0.125 * std::log(0.125) + 0.375 * std::log(0.375) + 0.5 * std::log(0.5)),
              1e-15);
  EXPECT_EQ(task.facts().distinct_tokens, 4);
  EXPECT_FALSE(task.facts().entropy_rate);
}

TEST_F(Text, WindowsStayInTheirPartAndReachAllOfIt) {
  std::string content;
  for (int i = 0; i < 100; ++i) content += static_cast<char>(i);
  const TextTask task(data_of({file("a", content)}, 5, 0.2), true);
  std::int64_t first[2] = {1000, 1000}, last[2] = {-1, -1};
  for (std::int64_t number = 0; number < 3000; ++number) {
    for (const Part part : {Part::training, Part::validation}) {
      const auto [inputs, targets] = draw_sequence(task, 1, part, number, 5);
      const auto p = static_cast<std::size_t>(part);
      first[p] = std::min(first[p], inputs.front());
      last[p] = std::max(last[p], targets.back());
      EXPECT_EQ(targets.back(), inputs.front() + 5);
    }
  }
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(last[0], 79);
  EXPECT_EQ(first[1], 80);
  EXPECT_EQ(last[1], 99);
}

TEST_F(Text, NeedsOneTokenMoreThanTheContext) {
  const std::string path = file("a", "12345678");
  EXPECT_EQ(error_of(data_of({path}, 7)), "no error");
  EXPECT_EQ(error_of(data_of({path}, 8)),
            "data.context: " + path +
                ": 8 tokens, 8 of them for training, are too few for a context of 8, which needs 9; give more text in "
                "data.files, or write a smaller data.context or a smaller data.validation_fraction");
  EXPECT_THAT(error_of(data_of({file("empty", "")}, 1)), HasSubstr("0 tokens, 0 of them for training"));
  EXPECT_THAT(error_of(data_of({path, path}, 16)), HasSubstr(path + " and 1 more: 16 tokens"));
}

TEST_F(Text, NeedsAValidationPartOnlyForEvaluation) {
  const DataConfig data = data_of({file("a", std::string(100, 'x'))}, 20, 0.1);
  EXPECT_EQ(error_of(data, false), "no error");
  EXPECT_THAT(error_of(data, true),
              HasSubstr("100 tokens, 10 of them for validation, are too few for a context of 20"));
  EXPECT_THAT(error_of(data, true), HasSubstr("a larger data.validation_fraction"));
  const TextTask task(data, false);
  EXPECT_THROW(draw_sequence(task, 1, Part::validation, 0, 20), Error);
}

TEST_F(Text, RefusesAVocabularySmallerThanTheSymbols) {
  const std::string path = file("a", "hello \xC3\xA9");
  DataConfig data = data_of({path}, 4);
  data.vocabulary = 128;
  EXPECT_EQ(error_of(data),
            "data.vocabulary: " + path +
                ": 128 symbols are too few, the text has bytes up to 195; write 196 or more, or leave the "
                "key out");
  data.vocabulary = 196;
  EXPECT_EQ(error_of(data), "no error");
  data.tokenizer = Tokenizer::character;
  data.vocabulary = 5;
  EXPECT_THAT(error_of(data), HasSubstr("5 symbols are too few, the text has 6 characters; write 6 or more"));
  data.vocabulary = 6;
  EXPECT_EQ(error_of(data), "no error");
}

TEST_F(Text, RefusesWhatIsNotUtf8WhenCharactersAreAskedFor) {
  const std::string path = file("latin", "caf\xE9 au lait");
  DataConfig data = data_of({path}, 4);
  EXPECT_EQ(error_of(data), "no error");
  data.tokenizer = Tokenizer::character;
  EXPECT_THAT(error_of(data), StartsWith("data.files: " + path + ": the text is not UTF-8 (byte 0xE9, 3 bytes behind"));
  EXPECT_THAT(error_of(data), HasSubstr("write \"byte\" for data.tokenizer"));
}

TEST_F(Text, NamesEveryMissingFile) {
  EXPECT_THAT(error_of(data_of({}, 4)), StartsWith("data.files: "));
  const std::string lost = folder_ / "lost", gone = folder_ / "gone";
  const std::string errors = error_of(data_of({lost, file("a", "abcdef"), gone}, 4));
  EXPECT_THAT(errors, StartsWith("data.files: " + lost));
  EXPECT_THAT(errors, HasSubstr("\ndata.files: " + gone));
}

std::u32string decoded(std::string_view text) {
  const DecodedText result = decode_utf8(text);
  EXPECT_FALSE(result.fault_offset) << text;
  return {result.characters.begin(), result.characters.end()};
}

TEST(Utf8, DecodesEachLength) {
  EXPECT_EQ(decoded(""), U"");
  EXPECT_EQ(decoded(std::string_view("\x00\x7F", 2)), std::u32string_view(U"\x00\x7F", 2));
  EXPECT_EQ(decoded("\xC2\x80\xDF\xBF"), U"\x80\x7FF");
  EXPECT_EQ(decoded("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"), U"\x800\xD7FF\xE000\xFFFF");
  EXPECT_EQ(decoded("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), U"\x10000\x10FFFF");
}

TEST(Utf8, RefusesEveryFault) {
  const auto fault = [](std::string_view text) { return decode_utf8(text).fault_offset.value_or(999); };
  EXPECT_EQ(fault("a\x80"), 1u);     // continuation without a start
  EXPECT_EQ(fault("ab\xC3"), 2u);    // cut
  EXPECT_EQ(fault("\xE2\x82"), 0u);  // cut
  EXPECT_EQ(fault("\xC3("
                  "abc"),
            0u);                             // no continuation
  EXPECT_EQ(fault("\xC0\x80"), 0u);          // overlong
  EXPECT_EQ(fault("\xC1\xBF"), 0u);          // overlong
  EXPECT_EQ(fault("\xE0\x9F\xBF"), 0u);      // overlong
  EXPECT_EQ(fault("\xF0\x8F\xBF\xBF"), 0u);  // overlong
  EXPECT_EQ(fault("\xED\xA0\x80"), 0u);      // surrogate
  EXPECT_EQ(fault("\xF4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(fault("\xF5\x80\x80\x80"), 0u);
  EXPECT_EQ(fault("\xFF"), 0u);
}

}  // namespace
}  // namespace gradflow
