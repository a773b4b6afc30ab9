#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradflow {

/// How a group's lines are drawn: one of seven hues, and dashed where all seven are taken. report.css has the hues for
/// light and dark pages as --s1 … --s7.
struct Ink {
  int slot = 1;         ///< 1…7
  bool dashed = false;  ///< 6 3
  bool operator==(const Ink&) const = default;
};

inline constexpr int ink_slots = 7;
inline constexpr std::string_view ink_dashes = "6 3";

/// The hue of a light page, "#1553c9". A static picture is always light.
std::string_view light_colour(Ink ink);

/// The hue that a group of this name has in every report: pre, post, deepnorm, rezero, "no norm"; 0 for any other.
int kept_slot(std::string_view name);

/// The inks of groups by their names, in their order. Those of kept_slot come first; the others take 6, 7, then what is
/// free (from 1 on where none of the five is there), and from the eighth group on the hues again, dashed.
std::vector<Ink> inks_of(std::span<const std::string> names);

}  // namespace gradflow
