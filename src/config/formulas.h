#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// A formula in plain text and what its letters mean: "x + a·FeedForward(x)" where {"a learned, starts at 0"}.
struct Formula {
  std::string text;
  std::vector<std::string> where;

  /// Both in one line: "x + a·FeedForward(x), a learned, starts at 0".
  std::string line() const;
  bool operator==(const Formula&) const = default;
};

/// One sub-layer as it is computed. x is the stream that enters it, l the number of its block.
struct SubLayerFormula {
  std::string sublayer;  ///< attention, ffn, dense, conv: as in layers.csv
  Formula stream;        ///< what becomes of x: "x + Attention(LayerNorm(x))"
  std::string second;    ///< ResiDual: what becomes of r, which starts at the embedding; else empty
  Formula branch;        ///< what F is: "Attention(z) = out(softmax(q(z)·k(z)ᵀ/√16)·v(z))"; mlp, resnet: empty

  bool operator==(const SubLayerFormula&) const = default;
};

/// Blocks first … last, which follow the same formulas.
struct BlockFormulas {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::vector<SubLayerFormula> sublayers;
};

/// A whole stack: what starts the stream, the blocks, what follows the last of them.
struct StackFormulas {
  Formula start;
  std::vector<BlockFormulas> blocks;
  Formula end;  ///< logits (outputs of a regression)
};

/// The formulas of a resolved configuration, from the placement table and the derived constants (four digits). Sites
/// without effect are left out: no norm for norm `none`, no factor that is 1.
StackFormulas stack_formulas(const ModelConfig& model);

/// "blocks 1-12", "block 4".
std::string block_range(const BlockFormulas& blocks);

}  // namespace gradflow
