#include "model/layout.h"

#include "model/feedforward_layout.h"
#include "model/transformer_layout.h"

namespace gradflow {

std::int64_t ParameterSpec::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

std::int64_t Layout::parameter_count() const {
  std::int64_t count = 0;
  for (const SegmentSpec& segment : segments)
    for (const ParameterSpec& parameter : segment.parameters) count += parameter.size();
  return count;
}

Layout make_layout(const Config& config) {
  switch (config.model.stack) {
    case StackKind::transformer: return transformer_layout(config);
    case StackKind::mlp:
    case StackKind::resnet: return feedforward_layout(config);
  }
  return {};
}

}  // namespace gradflow
