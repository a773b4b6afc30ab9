#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/kinds.h"

namespace gradflow {

/// One key of the configuration: everything that is known about it. Parsing, printing, --set, the schema and the
/// README's table go through this list; the defaults are those of the structs in config.h.
class Field {
 public:
  Field(std::string_view key, std::string meaning, std::string default_words, std::vector<std::string_view> also_called)
      : key_(key),
        meaning_(std::move(meaning)),
        default_words_(std::move(default_words)),
        also_called_(std::move(also_called)) {}
  virtual ~Field() = default;

  /// Full path: "train.learning_rate".
  std::string_view key() const { return key_; }
  /// One line, for people.
  const std::string& meaning() const { return meaning_; }
  /// Names that other programs use for it; never accepted, only proposed.
  std::span<const std::string_view> also_called() const { return also_called_; }
  /// The default in words where it follows from other keys ("4·width"); empty where it is a plain value.
  const std::string& default_words() const { return default_words_; }

  virtual std::string type() const = 0;   ///< "whole number"
  virtual std::string range() const = 0;  ///< "at least 1", or the choices; empty when there is nothing to say
  virtual Json schema() const = 0;        ///< JSON Schema of the value alone

  /// Reads a value into the configuration, which stays as it was when there is a fault; returns the fault.
  virtual std::string assign(const JsonValue& from, Config& config) const = 0;
  /// What --set KEY=TEXT means: the text itself for strings and choices, JSON for the others.
  virtual JsonValue from_option(std::string_view text) const = 0;
  virtual Json value(const Config& config) const = 0;
  /// Fills in a plain number that follows from other keys and was not given.
  virtual void resolve(Config& config) const = 0;
  /// Whether the value is the one that an absent key would have.
  virtual bool is_default(const Config& config) const = 0;

 private:
  std::string_view key_;
  std::string meaning_;
  std::string default_words_;
  std::vector<std::string_view> also_called_;
};

/// Every key, in the order in which they are printed.
std::span<const std::unique_ptr<const Field>> fields();
/// The groups of keys: "model", "data", …, "record.spikes".
std::span<const std::string_view> field_groups();
/// The field of that full path, or null.
const Field* find_field(std::string_view key);
/// "learning_rate" of "train.learning_rate".
std::string_view last_component(std::string_view key);
/// A value as a person would name it: texts without quotes, lists joined by "+".
std::string value_in_words(const Json& value);

}  // namespace gradflow
