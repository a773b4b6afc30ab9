#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gradflow {

/// Where a value was written: "FILE:LINE" or "--set KEY"; an empty text for a configuration that a program made.
struct Origin {
  std::string text;
  std::int64_t order = 0;  ///< place in the report: lines of the file first, then the options
};

Origin line_of(std::string_view file, std::int64_t line);
Origin option_named(std::string_view key, std::size_t position);

/// Where each key was written, and what to name for keys that were not.
struct Origins {
  std::map<std::string, Origin, std::less<>> keys;
  Origin otherwise;
};

/// What is wrong in one configuration, collected so that one report names everything.
class Faults {
 public:
  /// `fault` reads "what is wrong; what to write instead". The key is left out where it is empty or equals the option.
  void add(const Origin& origin, std::string_view key, std::string_view fault);
  bool concerns(std::string_view key) const { return keys_.contains(key); }
  /// Whether something is wrong with a key that begins so, or with the text as such (the syntax).
  bool concern_keys(std::string_view prefix) const;
  /// More than a person corrects at once: collecting further faults is pointless.
  bool full() const { return lines_.size() >= 100; }
  /// Throws Error with one line for each fault, in the order of the file; does nothing when there is none.
  void raise() const;

 private:
  std::vector<std::pair<std::int64_t, std::string>> lines_;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace gradflow
