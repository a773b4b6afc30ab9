#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/files.h"
#include "output/table.h"

namespace gradflow::testing {

/// The rows of one stack: stream_variance doubles with each block and the closed form says between 2^l and 3^l, ‖∂L/∂x‖
/// halves on its way down, which no closed form tells.
inline std::string probe_rows(const std::string& kind, std::int64_t depth, std::int64_t seed) {
  std::string rows;
  for (std::int64_t l = 1; l <= depth; ++l) {
    const double by_seed = 1 + 0.01 * static_cast<double>(seed), power = std::pow(2, l);
    const std::string place = fmt::format("{},{},{},{},ffn,", kind, depth, seed, l);
    rows += fmt::format("{}stream_variance,{},{},{}\n", place, power * by_seed, power, std::pow(3, l));
    rows += fmt::format("{}stream_grad_norm,{},,\n", place, power * by_seed);
  }
  return rows + fmt::format("{},{},{},,,jacobian_rms_gain,{},,\n", kind, depth, seed, 1.5);
}

/// A probe's folder of these kinds ("pre,layernorm,add,xavier_normal"), of so many depths from 4 on and three seeds.
inline void make_probe(const std::string& folder, const std::vector<std::string>& kinds, std::int64_t depths = 2) {
  std::string text = header_line(probe_columns()) + "\n";
  for (const std::string& kind : kinds)
    for (std::int64_t k = 0; k < depths; ++k)
      for (std::int64_t seed = 1; seed <= 3; ++seed) text += probe_rows(kind, std::int64_t{4} << k, seed);
  create_folders(folder);
  write_file_atomically(folder + "/probe.csv", text);
  write_file_atomically(folder + "/config.json", "{}");
}

}  // namespace gradflow::testing
