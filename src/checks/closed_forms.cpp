#include <cmath>
#include <stdexcept>

#include "checks/checks.h"
#include "config/derived.h"
#include "config/resolved.h"
#include "model/layout.h"

namespace gradflow {
namespace {

/// Initial std of the first block's matrix.
double initial_std(Placement placement, std::int64_t depth, const std::string& matrix) {
  Config config;
  config.model.placement = placement;
  config.model.depth = depth;
  for (const SegmentSpec& segment : make_layout(resolved(config)).segments)
    for (const ParameterSpec& parameter : segment.parameters)
      if (parameter.name == "block.1." + matrix + ".weight") return parameter.fill.std;
  throw std::logic_error("no matrix of that name");
}

}  // namespace

double constant_check(const OperatorCheck& check) {
  if (check.row->kind == OperatorKind::power) return std::pow(check.number("base"), check.number("exponent"));
  const std::int64_t depth = check.count("depth");
  if (check.row->kind == OperatorKind::deepnorm_std)
    return initial_std(Placement::deepnorm, depth, check.word("matrix")) /
           initial_std(Placement::post, depth, check.word("matrix"));
  ModelConfig model;
  model.placement = Placement::deepnorm;
  model.depth = depth;
  return check.word("constant") == "alpha" ? deepnorm_alpha(model) : deepnorm_beta(model);
}

}  // namespace gradflow
