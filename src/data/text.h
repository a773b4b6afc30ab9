#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "data/sequence_task.h"

namespace gradflow {

/// `text`: the files one after another, read in binary, so that line ends stay as they are; a byte-order mark at the
/// start of a file is no token. Tokens are bytes (their values) or characters (code points, numbered in their order
/// among those that occur). The last ⌊validation_fraction·tokens⌋ are for validation, the others for training. A
/// sequence is a random window of context + 1 tokens of its part: inputs all but the last, targets all but the first.
/// H₁ is the entropy of the token counts of the training part.
class TextTask : public SequenceTask {
 public:
  /// Reads the files. Throws Error when one cannot be read, is not UTF-8 although characters are asked for, has symbols
  /// beyond data.vocabulary, or when a part is shorter than context + 1 (the validation part only if `evaluates`).
  TextTask(const DataConfig& data, bool evaluates);

  const TaskFacts& facts() const override { return facts_; }
  /// Throws Error when the part is too short: validation that was not announced.
  void draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const override;

 private:
  void read_bytes(const std::string& path, std::string_view content);
  void number_characters();
  void require_length(Part part) const;
  void count_symbols();
  std::int64_t tokens() const;
  std::int64_t token(std::int64_t place) const {
    return bytes_.empty() ? characters_[static_cast<std::size_t>(place)]
                          : static_cast<unsigned char>(bytes_[static_cast<std::size_t>(place)]);
  }

  DataConfig data_;
  std::string bytes_;                     // one of the two is filled
  std::vector<std::int32_t> characters_;  // code points while reading, then their numbers
  std::int64_t training_tokens_ = 0;
  TaskFacts facts_;
};

}  // namespace gradflow
