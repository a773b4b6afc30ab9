#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace gradflow {

/// A number that follows from depth and placement and stands in the model.
struct Constant {
  std::string name;    ///< as in config.json's derived part: "deepnorm_alpha"
  std::string symbol;  ///< "α"
  double value = 0;
  std::string meaning;  ///< "(2N)^¼, on the skip"
};

/// Those that the model uses, the factor on the branches always. N counts blocks, each with attention and feed-forward,
/// of one stack without cross-attention: the constants of encoder-decoder models differ and are not offered.
std::vector<Constant> model_constants(const ModelConfig& model);

}  // namespace gradflow
