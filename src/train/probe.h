#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/predictions.h"
#include "config/config.h"
#include "model/batch.h"
#include "model/tensor.h"

namespace gradflow {

/// One number of a stack at initialization.
struct ProbedNumber {
  std::optional<std::int64_t> layer;  ///< as in layers.csv; absent: of the whole stack
  std::string sublayer;
  std::string_view quantity;  ///< a column of layers.csv or a name of quantities.csv
  double value = 0;
  std::optional<Band> predicted;  ///< by theory (analysis/predictions.h), from what this stack's embedding puts out
};

/// Builds the stack of `config` (resolved), passes `batches` (the micro-batches of one step) forward and backward, and
/// reads what record.quantities names: columns of layers.csv, as a run's first step would (those of updates do not
/// exist), and quantities on demand, over the batch `evaluation` (undefined inputs where none is named). Nothing is
/// trained; the stack is gone when the function returns.
std::vector<ProbedNumber> probe_stack(const Config& config, std::span<const Batch> batches, const Batch& evaluation,
                                      at::Device device);

}  // namespace gradflow
