#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/faults.h"
#include "config/json_reader.h"

namespace gradflow {

/// One JSON object of a claim file while it is read: hands out the values of known keys, collects what is wrong.
class ObjectReader {
 public:
  /// `path` is that of the object within the file ("statistic.of"), empty for the whole. When `value` is no object, the
  /// fault is added and every key is absent.
  ObjectReader(const JsonValue& value, std::string path, std::string_view file, Faults& faults);

  /// The value of a key; null when it is absent.
  const JsonValue* find(std::string_view key);
  /// The same; an absent key is a fault: "missing; REMEDY".
  const JsonValue* require(std::string_view key, std::string_view remedy);
  /// A text; empty with a fault where it is missing, empty or no text.
  std::string require_text(std::string_view key, std::string_view remedy);
  /// A text or nothing.
  std::string text_or(std::string_view key, std::string_view otherwise);
  /// Adds a fault for each key that nobody asked for, naming the nearest of those asked for.
  void refuse_others();

  void refuse(const JsonValue& at, std::string_view key, std::string_view fault);
  void refuse(std::string_view fault);
  std::string path_of(std::string_view key) const;
  const JsonValue& value() const { return value_; }
  std::string_view file() const { return file_; }
  Faults& faults() { return faults_; }

 private:
  std::string read_text(const JsonValue& at, std::string_view key);

  const JsonValue& value_;
  std::string path_;
  std::string_view file_;
  Faults& faults_;
  std::vector<std::string_view> asked_;
};

/// "did you mean X?", or the whole list where nothing is near.
std::string did_you_mean_word(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace gradflow
