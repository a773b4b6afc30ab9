#include "kernels/simd_level.h"

#include "kernels/targets.h"
//
#include <hwy/highway.h>

#include <cstdint>
#include <stdexcept>

namespace gradflow {
namespace {

std::string name_of_target(std::int64_t target) {
  if (target == HWY_SCALAR || target == HWY_EMU128) return "scalar";
  const std::string name = hwy::TargetName(target);
  return name == "AVX3" ? "AVX-512" : name;
}

std::int64_t& forced() {
  static std::int64_t target = 0;
  return target;
}

std::vector<std::int64_t> targets() {
  hwy::SetSupportedTargetsForTest(0);
  // The scalar level always works, but processors that have better do not name it.
  std::int64_t left = (hwy::SupportedTargets() | HWY_BASELINE_SCALAR) & HWY_TARGETS;
  if (forced() != 0) hwy::SetSupportedTargetsForTest(forced());
  std::vector<std::int64_t> found;
  for (; left != 0; left &= left - 1) found.push_back(left & ~(left - 1));
  return found;
}

}  // namespace

std::vector<std::string> simd_levels() {
  std::vector<std::string> names;
  for (const std::int64_t target : targets()) names.push_back(name_of_target(target));
  return names;
}

std::string simd_level() { return forced() != 0 ? name_of_target(forced()) : simd_levels().front(); }

void force_simd_level(const std::string& level) {
  std::int64_t chosen = 0;
  for (const std::int64_t target : targets())
    if (name_of_target(target) == level) chosen = target;
  if (chosen == 0 && !level.empty()) throw std::logic_error("no SIMD level " + level);
  forced() = chosen;
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace gradflow
