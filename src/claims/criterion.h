#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/statistics.h"

namespace gradflow {

/// The numbers that one side of a criterion takes: those above or below a bound (without it), those between two bounds
/// (with them), or those outside of two bounds (without them).
class Region {
 public:
  static Region above(double bound);
  static Region below(double bound);
  static Region between(double low, double high);
  static Region outside(double low, double high);

  /// Whether the whole interval lies inside.
  bool holds(const MeanInterval& interval) const;
  /// Whether some of the interval lies inside.
  bool meets(const MeanInterval& interval) const;
  /// Whether the two have numbers in common.
  bool overlaps(const Region& other) const;
  /// The one or two stretches that it takes, from and to; ±infinity where one has no end.
  std::vector<std::pair<double, double>> pieces() const;
  /// The bound nearest to a value.
  double nearest_bound(double value) const;
  /// "above 0.2", "between −0.05 and 0.05".
  std::string words() const;

 private:
  enum class Kind { above, below, between, outside };
  Region(Kind kind, double low, double high) : kind_(kind), low_(low), high_(high) {}

  bool contains(double value) const;

  Kind kind_;
  double low_, high_;
};

/// What is asked of the number of a claim, fixed before any run.
struct Criterion {
  Region reproduced;  ///< where the claim says that it lies
  Region refuted;     ///< where it would show the opposite; has nothing in common with `reproduced`

  /// "reproduced above 0.2, refuted below 0".
  std::string words() const;
};

enum class ClaimVerdict {
  reproduced,      ///< the interval lies where the claim says
  refuted,         ///< the interval lies where the opposite is
  not_reproduced,  ///< the interval lies outside of what the claim says, without showing the opposite
  undecided,       ///< the interval lies partly where the claim says, there are fewer than 3 seeds, or a run is missing
};
inline constexpr std::array<std::string_view, 4> names_of(ClaimVerdict) {
  return {"reproduced", "refuted", "not reproduced", "undecided"};
}
inline std::string_view name_of(ClaimVerdict verdict) {
  return names_of(ClaimVerdict{})[static_cast<std::size_t>(verdict)];
}

/// The verdict of the numbers of all seeds, and why.
struct ClaimJudgement {
  ClaimVerdict verdict = ClaimVerdict::undecided;
  std::int64_t seeds = 0;
  std::optional<double> value;           ///< mean over the seeds
  std::optional<MeanInterval> interval;  ///< its 95 % Student interval; absent below two seeds
  std::string reason;                    ///< what decided, and what would have decided otherwise
};

/// How the numbers of the seeds are averaged. `geometric` averages logarithms, for ratios; `exact` is for checks that
/// draw nothing, whose single number needs no seeds and has no interval but itself.
enum class Averaging { arithmetic, geometric, exact };

/// One number for each seed. A number that is not finite decides nothing, nor does one that is not positive under
/// `geometric`.
ClaimJudgement judge(std::span<const double> values, const Criterion& criterion, Averaging averaging);

}  // namespace gradflow
