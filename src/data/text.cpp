#include "data/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/derived.h"
#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "data/entropy.h"
#include "data/utf8.h"

namespace gradflow {

namespace {

std::string names_of_files(const std::vector<std::string>& files) {
  if (files.size() == 1) return files[0];
  return fmt::format("{} and {} more", files[0], files.size() - 1);
}

}  // namespace

TextTask::TextTask(const DataConfig& data, bool evaluates) : data_(data) {
  if (data_.files.empty())
    throw Error("data.files: the task text has no file to read; write a list of paths, such as [\"book.txt\"]");
  std::vector<std::string> faults;
  facts_.text_bytes = 0;
  for (const std::string& path : data_.files) {
    give_up_if_interrupted();
    try {
      const std::string content = read_file(path);
      *facts_.text_bytes += static_cast<std::int64_t>(content.size());
      read_bytes(path, without_byte_order_mark(content));
    } catch (const Error& error) {
      for (const std::string& line : error.lines()) faults.push_back("data.files: " + line);
    }
  }
  if (!faults.empty()) throw Error(faults);

  if (data_.tokenizer == Tokenizer::character) number_characters();
  facts_.text_tokens = tokens();
  training_tokens_ = tokens() - share_of(data_.validation_fraction, tokens());
  require_length(Part::training);
  if (evaluates) require_length(Part::validation);
  count_symbols();
}

void TextTask::read_bytes(const std::string& path, std::string_view content) {
  if (data_.tokenizer == Tokenizer::byte) {
    bytes_ += content;
    return;
  }
  const DecodedText decoded = decode_utf8(content);
  if (decoded.fault_offset)
    throw Error(
        fmt::format("{}: the text is not UTF-8 (byte 0x{:02X}, {} bytes behind its start); convert it, or write "
                    "\"byte\" for data.tokenizer",
                    path, static_cast<unsigned char>(content[*decoded.fault_offset]), *decoded.fault_offset));
  characters_.insert(characters_.end(), decoded.characters.begin(), decoded.characters.end());
}

/// Replaces each code point by its rank among those that occur.
void TextTask::number_characters() {
  constexpr std::size_t code_points = 0x110000;
  std::vector<std::int32_t> number(code_points, 0);
  for (const std::int32_t character : characters_) number[static_cast<std::size_t>(character)] = 1;
  std::int32_t distinct = 0;
  for (std::int32_t& place : number) place = place == 0 ? 0 : distinct++;
  for (std::int32_t& character : characters_) character = number[static_cast<std::size_t>(character)];
}

std::int64_t TextTask::tokens() const { return static_cast<std::int64_t>(bytes_.size() + characters_.size()); }

void TextTask::require_length(Part part) const {
  const std::int64_t needed = data_.context + 1;
  const bool training = part == Part::training;
  const std::int64_t length = training ? training_tokens_ : tokens() - training_tokens_;
  if (length >= needed) return;
  throw Error(
      fmt::format("data.context: {}: {} tokens, {} of them for {}, are too few for a context of {}, which needs {}; "
                  "give more text in data.files, or write a smaller data.context or a {} data.validation_fraction",
                  names_of_files(data_.files), tokens(), length, training ? "training" : "validation", data_.context,
                  needed, training ? "smaller" : "larger"));
}

void TextTask::count_symbols() {
  std::vector<double> counts;
  const auto count_in = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t place = first; place < last; ++place) {
      const auto symbol = static_cast<std::size_t>(token(place));
      if (symbol >= counts.size()) counts.resize(symbol + 1);
      ++counts[symbol];
    }
  };
  count_in(0, training_tokens_);
  facts_.unigram_entropy = entropy(counts);
  count_in(training_tokens_, tokens());
  facts_.distinct_tokens = std::count_if(counts.begin(), counts.end(), [](double count) { return count > 0; });
  facts_.vocabulary = data_.vocabulary.value_or(default_vocabulary(data_).value_or(*facts_.distinct_tokens));

  const auto symbols = static_cast<std::int64_t>(counts.size());
  if (symbols <= facts_.vocabulary) return;
  const std::string what = data_.tokenizer == Tokenizer::byte ? fmt::format("the text has bytes up to {}", symbols - 1)
                                                              : fmt::format("the text has {} characters", symbols);
  throw Error(fmt::format("data.vocabulary: {}: {} symbols are too few, {}; write {} or more, or leave the key out",
                          names_of_files(data_.files), facts_.vocabulary, what, symbols));
}

void TextTask::draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const {
  require_length(draw.part());
  const bool training = draw.part() == Part::training;
  const std::int64_t length = training ? training_tokens_ : tokens() - training_tokens_;
  const std::int64_t first =
      (training ? 0 : training_tokens_) + draw.below(length - static_cast<std::int64_t>(inputs.size()), 0);
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    inputs[t] = token(first + static_cast<std::int64_t>(t));
    targets[t] = token(first + static_cast<std::int64_t>(t) + 1);
  }
}

}  // namespace gradflow
