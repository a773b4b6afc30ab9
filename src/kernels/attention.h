#pragma once

#include <cstddef>
#include <cstdint>

namespace gradflow {

/// Attention over whole sequences: queries, keys and values side by side, qkv [sequences·tokens, 3·width] without their
/// biases; head h takes columns h·width/heads … of each.
struct AttentionShape {
  std::size_t sequences = 0;
  std::size_t tokens = 0;
  std::size_t width = 0;
  std::size_t heads = 0;
  bool causal = true;

  std::size_t head_width() const { return width / heads; }
  /// Floats that attention_forward leaves for attention_backward.
  std::size_t statistics_size() const { return sequences * heads * 2 * padded_tokens(); }
  /// Floats of working memory, 64-byte aligned.
  std::size_t scratch_size() const;
  std::size_t padded_tokens() const { return (tokens + 15) / 16 * 16; }
  std::size_t padded_head_width() const { return head_width() <= 8 ? 8 : (head_width() + 15) / 16 * 16; }
};

/// The biases of q, k and v, [width] each; all null: none.
struct AttentionBiases {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
};

/// out [sequences·tokens, width] = softmax(q·kᵀ/√head_width)·v. `visible` [sequences]: how many tokens of each sequence
/// are keys, from its start (the others are padding); null: all.
void attention_forward(const AttentionShape& shape, const float* qkv, const AttentionBiases& biases,
                       const std::int64_t* visible, float* out, float* statistics, float* scratch);
/// dL/dqkv from out_gradient = dL/dout. The probabilities are computed again from `statistics`.
void attention_backward(const AttentionShape& shape, const float* qkv, const AttentionBiases& biases,
                        const std::int64_t* visible, const float* out_gradient, const float* statistics,
                        float* qkv_gradient, float* scratch);

}  // namespace gradflow
