#include "report/palette.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

namespace gradflow {
namespace {

// Contrast with white at least 4.8 (the first five), distances under simulated colour blindness: palette_test.cpp.
constexpr std::array<std::string_view, ink_slots> light = {"#1553c9", "#a83208", "#0f8066", "#7d1a85",
                                                           "#191a1d", "#ae8f0d", "#369cc4"};
constexpr std::array<std::string_view, 5> kept_names = {"pre", "post", "deepnorm", "rezero", "no norm"};

}  // namespace

std::string_view light_colour(Ink ink) { return light[static_cast<std::size_t>(ink.slot - 1)]; }

int kept_slot(std::string_view name) {
  const auto found = std::find(kept_names.begin(), kept_names.end(), name);
  return found == kept_names.end() ? 0 : static_cast<int>(found - kept_names.begin()) + 1;
}

std::vector<Ink> inks_of(std::span<const std::string> names) {
  std::vector<Ink> inks(names.size());
  std::set<int> taken;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int slot = kept_slot(names[i]);
    if (slot != 0 && taken.insert(slot).second)
      inks[i].slot = slot;
    else
      others.push_back(i);
  }
  std::array<int, ink_slots> order = {6, 7, 1, 2, 3, 4, 5};
  if (taken.empty()) std::sort(order.begin(), order.end());  // nothing to keep them apart from
  std::vector<int> free;
  std::copy_if(order.begin(), order.end(), std::back_inserter(free), [&](int slot) { return !taken.contains(slot); });
  for (std::size_t k = 0; k < others.size(); ++k)
    inks[others[k]] =
        k < free.size() ? Ink{free[k], false} : Ink{static_cast<int>((k - free.size()) % ink_slots) + 1, true};
  return inks;
}

}  // namespace gradflow
