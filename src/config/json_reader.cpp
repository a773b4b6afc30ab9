#include "config/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "config/text.h"
#include "core/error.h"

namespace gradflow {
namespace {

/// Hands the text to the parser and tells how much of it was taken.
struct CountingIterator {
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  const char* at;
  std::size_t* taken;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    ++at;
    ++*taken;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
};

struct Place {
  std::int64_t line;
  std::int64_t column;  // in characters, from 1
};

Place place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  std::string_view line = before.substr(line_start);
  if (line_start == 0 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  const auto characters =
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return {1 + std::count(before.begin(), before.end(), '\n'), 1 + characters};
}

/// The next character that is neither space nor comment, from `offset` on.
std::size_t skip_space_and_comments(std::string_view text, std::size_t offset) {
  while (offset < text.size()) {
    if (std::string_view(" \t\r\n").find(text[offset]) != std::string_view::npos) {
      ++offset;
    } else if (text.substr(offset, 2) == "//") {
      offset = std::min(text.find('\n', offset), text.size());
    } else if (text.substr(offset, 2) == "/*") {
      const std::size_t end = text.find("*/", offset + 2);
      offset = end == std::string_view::npos ? text.size() : end + 2;
    } else {
      break;
    }
  }
  return offset;
}

[[noreturn]] void refuse_text(std::string_view text, std::string_view file, std::size_t offset, std::string_view fault,
                              std::string_view remedy) {
  const Place where = place_of(text, offset);
  const std::string origin = line_of(file, where.line).text;
  throw Error(fmt::format("{}{}{} (column {}); {}", origin, origin.empty() ? "" : ": ", fault, where.column, remedy));
}

void refuse_bytes_that_are_no_text(std::string_view text, std::string_view file) {
  if (const auto invalid = first_invalid_utf8(text))
    refuse_text(text, file, *invalid, "not UTF-8", "save the file as UTF-8");
  // The parser would take a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    refuse_text(text, file, zero, "a zero byte", "save the file as plain text");
}

/// Builds the value from the parser's events.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Overflows = std::map<std::size_t, std::string>;  // end of a number's digits -> the digits

  Builder(std::string_view text, std::string_view file, const std::size_t& taken, const Overflows& overflows)
      : text_(text), file_(file), taken_(taken), overflows_(overflows) {}

  bool null() override {
    return scalar(JsonValue::Kind::null, [](JsonValue&) {});
  }
  bool boolean(bool value) override {
    return scalar(JsonValue::Kind::boolean, [&](JsonValue& v) { v.boolean = value; });
  }
  bool number_integer(std::int64_t value) override { return number(static_cast<double>(value), std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override {
    return number(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(double value, const std::string& digits) override { return number(value, digits); }
  bool string(std::string& value) override {
    return scalar(JsonValue::Kind::string, [&](JsonValue& v) { v.text = std::move(value); });
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonValue::Kind::object); }
  bool start_array(std::size_t) override { return open(JsonValue::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    Level& level = levels_.back();
    level.name = std::move(name);
    level.name_line = line();
    value_end_ = text_.size();
    const auto [first, is_new] = level.lines.emplace(level.name, level.name_line);
    if (!is_new) repeated_.push_back({path(), first->second, level.name_line});
    return true;
  }

  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception& error) override {
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error)) {
      overflow_ = token;
      overflow_end_ = value_end(true);
      return false;
    }
    throw_syntax_error(error.what());
  }

  /// The digits of a number beyond the range of double, at which the parser gives up; empty when there was none.
  const std::string& overflow() const { return overflow_; }
  std::size_t overflow_end() const { return overflow_end_; }

  JsonValue result(Faults& faults) {
    for (const Repeated& again : repeated_)
      faults.add(line_of(file_, again.line), again.path,
                 fmt::format("repeated, first written on line {}; keep one of the two", again.first_line));
    return std::move(root_);
  }

 private:
  struct Level {
    JsonValue value;
    std::string name;  // object: of the element that comes next
    std::int64_t name_line = 1;
    std::unordered_map<std::string, std::int64_t> lines;  // object: where each name was first written
  };
  struct Repeated {
    std::string path;
    std::int64_t first_line;
    std::int64_t line;
  };

  /// Line of the token just read. A number is known to be over only after the character behind it, which may be a line
  /// break; no token contains one, so the last character taken can always be left out.
  std::int64_t line() {
    const std::size_t end = taken_ == 0 ? 0 : taken_ - 1;
    line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                        text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    counted_ = end;
    return line_;
  }

  std::size_t value_end(bool is_number) const {
    const bool looked_ahead =
        is_number && !(taken_ == text_.size() && std::isdigit(static_cast<unsigned char>(text_.back())));
    return looked_ahead ? taken_ - 1 : taken_;
  }

  std::string path() const {
    std::string out;
    for (const Level& level : levels_)
      if (level.value.kind == JsonValue::Kind::object) out += (out.empty() ? "" : ".") + level.name;
    return out;
  }

  template <class Fill>
  bool scalar(JsonValue::Kind kind, Fill fill) {
    JsonValue value;
    value.kind = kind;
    value.line = line();
    value_end_ = value_end(kind == JsonValue::Kind::number);
    fill(value);
    return place(std::move(value));
  }

  bool number(double value, const std::string& digits) {
    return scalar(JsonValue::Kind::number, [&](JsonValue& v) {
      const auto beyond = overflows_.find(value_end_);
      v.number = beyond == overflows_.end() ? value : std::numeric_limits<double>::infinity();
      v.text = beyond == overflows_.end() ? digits : beyond->second;
    });
  }

  bool open(JsonValue::Kind kind) {
    constexpr std::size_t deepest = 100;
    if (levels_.size() == deepest)
      fail(taken_ - 1, fmt::format("more than {} levels of brackets", deepest), "write a flatter file");
    Level level;
    level.value.kind = kind;
    level.value.line = line();
    levels_.push_back(std::move(level));
    value_end_ = text_.size();
    return true;
  }

  bool close() {
    JsonValue value = std::move(levels_.back().value);
    levels_.pop_back();
    value_end_ = taken_;
    return place(std::move(value));
  }

  bool place(JsonValue value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = levels_.back();
    if (level.value.kind == JsonValue::Kind::object) {
      level.value.names.push_back(level.name);
      value.line = level.name_line;
    }
    level.value.elements.push_back(std::move(value));
    return true;
  }

  /// Says in our words what the parser says in "… parse error at line 1, column 2: syntax error while parsing value -
  /// unexpected '}'; expected '['".
  [[noreturn]] void throw_syntax_error(std::string_view message) const {
    const std::size_t comma = skip_space_and_comments(text_, value_end_);
    if (comma < text_.size() && text_[comma] == ',') {
      const std::size_t next = skip_space_and_comments(text_, comma + 1);
      if (next < text_.size() && (text_[next] == '}' || text_[next] == ']'))
        fail(comma, "trailing comma", "remove it (comments are accepted, trailing commas are not)");
    }
    // A number is over only at the character behind it.
    const std::size_t behind = message.find("unexpected number literal") != std::string_view::npos ? 2 : 1;
    const std::size_t offset = taken_ < behind ? 0 : taken_ - behind;
    if (message.find("unexpected end of input") != std::string_view::npos) {
      if (skip_space_and_comments(text_, text_.starts_with("\xEF\xBB\xBF") ? 3 : 0) == text_.size())
        fail(text_.size(), "the file is empty", "write {} for a run with every default");
      fail(text_.size(), "the file ends too early", "close every bracket, text and comment");
    }
    if (message.find("invalid literal") != std::string_view::npos)
      fail(offset, "neither a number nor true, false, null or a text",
           "write numbers as 0.001 or 1e-3, texts and keys in double quotes");
    const std::size_t dash = message.find(" - ");
    const std::string_view context = message.substr(0, dash);
    if (context.ends_with("parsing object") || context.ends_with("parsing array"))
      fail(offset, "neither a comma nor a closing bracket behind a value", "write a comma between two values");
    if (message.ends_with("expected end of input"))
      fail(offset, "something behind the end of the configuration", "remove it");
    std::string_view fault = dash == std::string_view::npos ? "not JSON" : message.substr(dash + 3);
    fault = fault.substr(0, fault.find("; last read"));
    constexpr std::string_view expected = "; expected ";
    const std::size_t remedy = fault.find(expected);
    if (remedy == std::string_view::npos) fail(offset, fault, "write it as JSON asks");
    std::string_view instead = fault.substr(remedy + expected.size());
    if (instead == "string literal") instead = "a key in double quotes";
    if (instead.ends_with("or a literal")) instead = "a value";
    fail(offset, fault.substr(0, remedy), fmt::format("write {} here", instead));
  }

  [[noreturn]] void fail(std::size_t offset, std::string_view fault, std::string_view remedy) const {
    refuse_text(text_, file_, offset, fault, remedy);
  }

  std::string_view text_;
  std::string_view file_;
  const std::size_t& taken_;
  const Overflows& overflows_;
  JsonValue root_;
  std::vector<Level> levels_;
  std::vector<Repeated> repeated_;
  std::string overflow_;
  std::size_t overflow_end_ = 0;
  std::size_t value_end_ = 0;
  std::size_t counted_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

JsonValue JsonValue::of_string(std::string_view content) {
  JsonValue value;
  value.kind = Kind::string;
  value.text = content;
  return value;
}

std::string described(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null: return "null";
    case JsonValue::Kind::boolean: return value.boolean ? "true" : "false";
    case JsonValue::Kind::number: return shown(value.text);
    case JsonValue::Kind::string: return fmt::format("a string ({})", in_quotes(value.text));
    case JsonValue::Kind::array: return "a list";
    case JsonValue::Kind::object: return "an object";
  }
  return "";
}

std::string json_text(const JsonValue& value) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  switch (value.kind) {
    case JsonValue::Kind::null: return "null";
    case JsonValue::Kind::boolean: return value.boolean ? "true" : "false";
    case JsonValue::Kind::number: return value.text;
    case JsonValue::Kind::string: return quoted(value.text);
    case JsonValue::Kind::array:
    case JsonValue::Kind::object: break;
  }
  const bool is_object = value.kind == JsonValue::Kind::object;
  std::string out;
  for (std::size_t i = 0; i < value.elements.size(); ++i)
    out += (i == 0 ? "" : ", ") + (is_object ? quoted(value.names[i]) + ": " : std::string()) +
           json_text(value.elements[i]);
  return is_object ? "{" + out + "}" : "[" + out + "]";
}

std::string option_text(const JsonValue& value) {
  return value.kind == JsonValue::Kind::string ? value.text : json_text(value);
}

JsonValue read_json(std::string_view text, std::string_view file, Faults& faults) {
  refuse_bytes_that_are_no_text(text, file);
  // The parser stops at a number beyond the range of double. Such a number is noted and read again as 0, so that the
  // other faults of the file are found, too.
  std::string readable(text);
  Builder::Overflows overflows;
  while (true) {
    std::size_t taken = 0;
    Builder builder(readable, file, taken, overflows);
    const CountingIterator first{readable.data(), &taken};
    const CountingIterator last{readable.data() + readable.size(), &taken};
    const bool done =
        nlohmann::json::sax_parse(first, last, &builder, nlohmann::json::input_format_t::json, true, true);
    if (done) return builder.result(faults);
    const std::size_t start = builder.overflow_end() - builder.overflow().size();
    readable.replace(start, builder.overflow().size(), builder.overflow().size(), ' ');
    readable[start] = '0';
    overflows.emplace(start + 1, builder.overflow());
    if (overflows.size() > 100)
      refuse_text(text, file, start, "one more number that is not finite", "write finite numbers");
  }
}

}  // namespace gradflow
