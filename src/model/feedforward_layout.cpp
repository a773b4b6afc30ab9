#include "model/feedforward_layout.h"

#include <string>
#include <utility>

#include "config/derived.h"
#include "model/segment_builder.h"

namespace gradflow {
namespace {

/// A weight layer: a dense matrix with its bias, or a convolution without one.
void add_layer(SegmentBuilder& builder, const ModelConfig& model, const std::string& name, Role role, std::int64_t out,
               std::int64_t in) {
  if (model.stack == StackKind::resnet) {
    builder.convolution(name, role, out, in);
    return;
  }
  builder.weight(name, role, out, in);
  if (model.bias) builder.bias(name, out);
}

SegmentSpec block_segment(const ModelConfig& model, std::int64_t block) {
  SegmentSpec segment{.layer = block, .sublayer = block_sublayer(model.stack)};
  SegmentBuilder builder(model, segment);
  const std::string prefix = "block." + std::to_string(block) + "." + segment.sublayer;
  const std::int64_t in = stream_width(model, block - 1), out = stream_width(model, block);
  const bool two_layers = model.block_layers == 2;
  const bool pre = model.placement == Placement::pre;
  if (pre) builder.norm(prefix + ".norm_1", model.norm, in);
  add_layer(builder, model, prefix + ".in", two_layers ? Role::branch_in : Role::branch_out, out, in);
  if (!pre) builder.norm(prefix + ".norm_1", model.norm, out);
  if (two_layers) {
    if (pre) builder.norm(prefix + ".norm_2", model.norm, out);
    add_layer(builder, model, prefix + ".out", Role::branch_out, out, out);
    if (!pre) builder.norm(prefix + ".norm_2", model.norm, out);
  }
  if (model.residual == Residual::scaled || model.residual == Residual::rezero)
    builder.add(prefix + ".residual.scale", {}, {.offset = model.residual_gate.value()});
  return segment;
}

}  // namespace

std::int64_t stem_inputs(const Config& config) {
  if (config.model.stack == StackKind::resnet) return image_channels;
  return config.data.task == Task::cifar10 ? image_channels * config.data.side * config.data.side : config.data.inputs;
}

std::int64_t head_outputs(const Config& config) {
  return config.data.task == Task::identity ? config.data.inputs : config.data.classes;
}

std::int64_t stream_width(const ModelConfig& model, std::int64_t block) {
  if (model.stack != StackKind::resnet || block == 0) return model.width;
  return model.width << resnet_stage(model, block);
}

const char* block_sublayer(StackKind stack) { return stack == StackKind::resnet ? "conv" : "dense"; }

Layout feedforward_layout(const Config& config) {
  const ModelConfig& model = config.model;
  Layout layout;

  SegmentSpec stem{.layer = 0, .sublayer = "stem"};
  {
    SegmentBuilder builder(model, stem);
    add_layer(builder, model, "stem", Role::other, model.width, stem_inputs(config));
    if (model.stack == StackKind::resnet && model.placement == Placement::post)
      builder.norm("stem.norm", model.norm, model.width);
  }
  layout.segments.push_back(std::move(stem));

  for (std::int64_t block = 1; block <= model.depth; ++block) layout.segments.push_back(block_segment(model, block));

  const std::int64_t width = stream_width(model, model.depth);
  if (has_final_norm(model)) {
    SegmentSpec final_norm{.layer = model.depth + 1, .sublayer = "final_norm"};
    SegmentBuilder(model, final_norm).norm("final_norm", model.norm, width);
    layout.segments.push_back(std::move(final_norm));
  }
  SegmentSpec head{.layer = model.depth + 1, .sublayer = "head"};
  {
    SegmentBuilder builder(model, head);
    builder.weight("head", Role::head, head_outputs(config), width);
    if (model.bias) builder.bias("head", head_outputs(config));
  }
  layout.segments.push_back(std::move(head));
  return layout;
}

}  // namespace gradflow
