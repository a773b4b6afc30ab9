#include "model/kept_tensors.h"

namespace gradflow {

double stream_element_bytes(Dtype dtype) { return dtype == Dtype::float64 ? 8 : dtype == Dtype::bfloat16 ? 2 : 4; }

double parameter_element_bytes(Dtype dtype) { return dtype == Dtype::float64 ? 8 : 4; }

KeptTensors::KeptTensors(const Config& config)
    : model_(config.model),
      stream_bytes_(stream_element_bytes(config.compute.dtype)),
      statistic_bytes_(parameter_element_bytes(config.compute.dtype)) {}

KeptTensors::Tensor KeptTensors::make(double elements) { return make(elements, stream_bytes_); }

KeptTensors::Tensor KeptTensors::make(double elements, double element_bytes) {
  tensors_.push_back({elements, element_bytes});
  return tensors_.size() - 1;
}

KeptTensors::Tensor KeptTensors::make_kept(double elements, double element_bytes) {
  const Tensor tensor = make(elements, element_bytes);
  keep(tensor);
  return tensor;
}

void KeptTensors::keep(Tensor tensor) {
  Entry& entry = tensors_[tensor];
  if (!entry.kept) bytes_ += entry.count * entry.element_bytes;
  entry.kept = true;
}

KeptTensors::Tensor KeptTensors::linear(Tensor input, double output_elements) {
  keep(input);
  return make(output_elements);
}

KeptTensors::Tensor KeptTensors::activation(Tensor input) {
  if (model_.activation == Activation::identity) return input;
  const Tensor output = like(input);
  // gelu' is a function of the input; those of relu and tanh are written with the output.
  keep(model_.activation == Activation::gelu ? input : output);
  return output;
}

KeptTensors::Tensor KeptTensors::norm(Tensor input, double features, Norm norm, bool on_images) {
  if (norm == Norm::none) return input;
  const double count = elements(input), rows = count / features;
  // Under bfloat16 the norm works on a float32 copy.
  const Tensor in = statistic_bytes_ == stream_bytes_ ? input : make(count, statistic_bytes_);
  switch (norm) {
    case Norm::none: break;
    case Norm::layernorm:
      if (on_images) {  // composed: the centred and the normalized tensor
        make_kept(2 * count + rows, statistic_bytes_);
      } else {  // one operator: its input, mean and 1/σ
        keep(in);
        make_kept(2 * rows, statistic_bytes_);
      }
      break;
    case Norm::rmsnorm:
      keep(in);
      make_kept(count + rows, statistic_bytes_);  // normalized, 1/rms
      break;
    case Norm::center: make_kept(count, statistic_bytes_); break;  // centred
    case Norm::dyt:
      keep(in);
      make_kept(count, statistic_bytes_);  // tanh
      break;
    case Norm::batchnorm: make_kept(3 * count, statistic_bytes_); break;  // centred twice, normalized
  }
  return make(count);
}

KeptTensors::Tensor KeptTensors::dropout(Tensor input) {
  if (model_.dropout == 0) return input;
  make_kept(elements(input), stream_bytes_);  // the mask
  return like(input);
}

KeptTensors::Tensor KeptTensors::joined(Tensor skip, Tensor branch) {
  const double count = elements(branch);
  switch (model_.residual) {
    case Residual::none: return branch;
    case Residual::add:
    case Residual::sqrt2: break;
    case Residual::scaled:
    case Residual::rezero:
    case Residual::layerscale: keep(branch); break;
    case Residual::highway:  // t, 1 − t and what they multiply
      keep(skip);
      keep(branch);
      make_kept(2 * count, stream_bytes_);
      break;
    case Residual::concat:
      keep(skip);
      keep(branch);
      break;
    case Residual::gate_literal:  // σ(s)
      keep(branch);
      make_kept(count, stream_bytes_);
      break;
  }
  return like(branch);
}

}  // namespace gradflow
