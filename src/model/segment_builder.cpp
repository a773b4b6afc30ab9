#include "model/segment_builder.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "config/derived.h"

namespace gradflow {
namespace {

constexpr std::int64_t kernel_side = 3;
constexpr std::int64_t kernel_size = kernel_side * kernel_side;

bool is_last_of_branch(Role role) { return role == Role::attention_out || role == Role::branch_out; }
bool takes_placement_gain(Role role) {
  return role == Role::value || role == Role::attention_out || role == Role::branch_in || role == Role::branch_out;
}

}  // namespace

std::int64_t branch_count(const ModelConfig& model) {
  return model.stack == StackKind::transformer ? 2 * model.depth : model.depth;
}

Fill matrix_fill(const ModelConfig& model, Role role, double in, double out, double l) {
  const double branches = static_cast<double>(branch_count(model));
  const double branches_a_block = branches / static_cast<double>(model.depth);
  const double xavier = std::sqrt(2 / (in + out));
  Fill fill{.distribution = Distribution::normal, .std = xavier};
  switch (model.initialization) {
    case Initialization::xavier_normal: break;
    case Initialization::xavier_uniform: fill.distribution = Distribution::uniform; break;
    case Initialization::he_normal: fill.std = std::sqrt(2 / in); break;
    case Initialization::normal: fill.std = model.init_std; break;
    case Initialization::gpt2:  // Radford et al. 2019: residual projections divided by the root of their number
      fill.std = is_last_of_branch(role) ? model.init_std / std::sqrt(branches) : model.init_std;
      break;
    case Initialization::orthogonal: fill = {.distribution = Distribution::orthogonal, .std = 1}; break;
    case Initialization::ds_init:  // Zhang et al. 2019
      fill = {.distribution = Distribution::uniform, .std = xavier / std::sqrt(l)};
      break;
    case Initialization::fixup:  // Zhang et al. 2019: branches^(-1/(2m − 2)) with m = 2 layers a branch
      fill.std = std::sqrt(2 / in);
      if (is_last_of_branch(role) || role == Role::head)
        fill.std = 0;
      else if (role != Role::other)
        fill.std /= std::sqrt(branches);
      break;
    case Initialization::t_fixup:  // Huang et al. 2020
      if (takes_placement_gain(role)) fill.std = 0.67 * std::pow(static_cast<double>(model.depth), -0.25) * xavier;
      break;
    case Initialization::mitchell:  // OLMo
      fill.std = is_last_of_branch(role) ? 1 / std::sqrt(branches_a_block * in * l) : 1 / std::sqrt(in);
      break;
    case Initialization::sinusoid: {
      const double amplitude = model.stack == StackKind::transformer ? xavier * std::numbers::sqrt2 : 2 / std::sqrt(in);
      fill = {.distribution = Distribution::sinusoid, .std = role == Role::head ? 1 / std::sqrt(in) : amplitude};
      break;
    }
  }
  if (takes_placement_gain(role)) fill.std *= placement_gain(model);
  if (is_last_of_branch(role)) fill.std *= model.branch_init_scale;
  if (role == Role::query_key) fill.std *= model.query_key_init_scale;
  return fill;
}

void SegmentBuilder::add(std::string name, std::vector<std::int64_t> shape, Fill fill) {
  segment_.parameters.push_back({std::move(name), std::move(shape), fill});
}

double SegmentBuilder::block() const {
  return segment_.layer >= 1 && segment_.layer <= model_.depth ? static_cast<double>(segment_.layer) : 1;
}

void SegmentBuilder::weight(const std::string& name, Role role, std::int64_t out, std::int64_t in) {
  add(name + ".weight", {out, in},
      matrix_fill(model_, role, static_cast<double>(in), static_cast<double>(out), block()));
}

void SegmentBuilder::convolution(const std::string& name, Role role, std::int64_t out, std::int64_t in) {
  add(name + ".weight", {out, in, kernel_side, kernel_side},
      matrix_fill(model_, role, static_cast<double>(in * kernel_size), static_cast<double>(out * kernel_size),
                  block()));
}

void SegmentBuilder::bias(const std::string& name, std::int64_t size, double start) {
  add(name + ".bias", {size}, start_around(start, 0.05, 0));
}

void SegmentBuilder::norm(const std::string& name, Norm norm, std::int64_t features) {
  if (norm == Norm::none) return;
  if (norm == Norm::dyt) add(name + ".alpha", {}, {.offset = 0.5});
  add(name + ".weight", {features}, start_around(1, 0.1, 1));
  if (norm != Norm::rmsnorm) add(name + ".bias", {features}, start_around(0, 0.05, 0));
  if (norm == Norm::batchnorm) {
    segment_.buffers.push_back({name + ".running_mean", features, 0});
    segment_.buffers.push_back({name + ".running_var", features, 1});
  }
}

Fill SegmentBuilder::start_around(double start, double amplitude, double middle) const {
  if (model_.initialization == Initialization::sinusoid)
    return {.distribution = Distribution::sinusoid, .std = amplitude, .offset = middle};
  return {.offset = start};
}

}  // namespace gradflow
