#include "command/gemm_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gradflow {
namespace {

double percent(double share) { return std::round(100 * share); }

}  // namespace

std::string gemm_share_text(double share) { return fmt::format("{:.0f} %", percent(share)); }

std::string gemm_share_note(std::span<const double> shares) {
  if (std::none_of(shares.begin(), shares.end(), [](double share) { return percent(share) > 100; })) return {};
  return "A GEMM share above 100 %: the machine was slower while the products were timed than during the fastest "
         "step;\n"
         "measure again when nothing else runs, or with a larger --repeat.\n";
}

}  // namespace gradflow
