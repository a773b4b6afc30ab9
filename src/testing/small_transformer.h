#pragma once

#include <cstdint>

#include "config/config.h"

namespace gradflow::testing {

/// Everything that decides how large the tensors of a Transformer are, but for the width of its feed-forward layers.
struct TransformerSizes {
  std::int64_t depth = 2, width = 8, heads = 2, vocabulary = 8, context = 8, batch = 4;
};

/// A Transformer of these sizes, not yet resolved; what else matters the test sets.
inline Config small_transformer(const TransformerSizes& sizes = {}) {
  Config config;
  config.model.depth = sizes.depth;
  config.model.width = sizes.width;
  config.model.heads = sizes.heads;
  config.data.vocabulary = sizes.vocabulary;
  config.data.context = sizes.context;
  config.train.batch = sizes.batch;
  return config;
}

}  // namespace gradflow::testing
