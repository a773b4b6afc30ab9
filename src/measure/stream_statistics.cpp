#include "measure/stream_statistics.h"

#include <cmath>

#include "kernels/reductions.h"
#include "measure/rows.h"

namespace gradflow {
namespace {

/// The numbers of a stream one behind the other, in a dtype the reductions take, and the rows that they are.
/// Tensors of many steps and segments pass here: no view is made of one that can be read as it is.
struct Matrix {
  explicit Matrix(const at::Tensor& x) : values(x), shape(row_shape(x)) {
    if (values.scalar_type() == at::kBFloat16) values = values.to(at::kFloat);
    if (!values.is_contiguous()) values = values.contiguous();
  }
  at::Tensor values;
  RowShape shape;
};

/// Which rows count; null: all.
const bool* real_rows(const at::Tensor& real, at::Tensor& keep_alive) {
  if (!real.defined()) return nullptr;
  keep_alive = real.contiguous();
  return keep_alive.data_ptr<bool>();
}

RowSums cpu_row_sums(const Matrix& matrix, const bool* real) {
  const auto count = static_cast<std::size_t>(matrix.shape.rows),
             features = static_cast<std::size_t>(matrix.shape.features);
  return matrix.values.scalar_type() == at::kDouble ? row_sums(matrix.values.data_ptr<double>(), count, features, real)
                                                    : row_sums(matrix.values.data_ptr<float>(), count, features, real);
}

double cpu_squares(const Matrix& matrix) {
  const auto count = static_cast<std::size_t>(matrix.values.numel());
  return matrix.values.scalar_type() == at::kDouble ? sum_of_squares(matrix.values.data_ptr<double>(), count)
                                                    : sum_of_squares(matrix.values.data_ptr<float>(), count);
}

}  // namespace

StreamMeter::StreamMeter(const Layout& layout, at::Device device)
    : shapes_(layout.segments.size()),
      sums_(at::zeros({static_cast<std::int64_t>(layout.segments.size()), sum_count},
                      at::TensorOptions().dtype(at::kDouble).device(device))) {
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const std::string& sublayer = layout.segments[s].sublayer;
    shapes_[s].has_stream = sublayer != "final_norm" && sublayer != "head";
  }
}

void StreamMeter::reset() {
  sums_.zero_();
  read_.clear();
  for (Shape& shape : shapes_) shape.measured_gradient = false;
}

void StreamMeter::add(std::size_t segment, Sum first, std::initializer_list<double> values) {
  double* row = sums_.data_ptr<double>() + segment * sum_count;
  std::size_t column = first;
  for (const double value : values) row[column++] += value;
}

void StreamMeter::add_rows(std::size_t segment, const at::Tensor& x, const at::Tensor& real) {
  if (!stays_on_device(x)) {
    const Matrix matrix(x);
    at::Tensor keep_alive;
    const RowSums row = cpu_row_sums(matrix, real_rows(real, keep_alive));
    add(segment, rows, {row.rows, row.sum, row.squares, row.variance_sum});
    return;
  }
  const at::Tensor values = as_rows(x).to(at::kDouble);
  const at::Tensor counted =
      real.defined() ? real.reshape({-1}).to(at::kDouble) : at::ones({values.size(0)}, values.options());
  const at::Tensor deviation = values - values.mean(1, /*keepdim=*/true);
  sums_[static_cast<std::int64_t>(segment)]
      .narrow(0, rows, 4)
      .add_(at::stack({counted.sum(), (values.sum(1) * counted).sum(), (values.square().sum(1) * counted).sum(),
                       (deviation.square().mean(1) * counted).sum()}));
}

void StreamMeter::add_squares(std::size_t segment, Sum which, const at::Tensor& x, const at::Tensor& real) {
  if (!stays_on_device(x)) {
    const Matrix matrix(x);
    at::Tensor keep_alive;
    const bool* counted = real_rows(real, keep_alive);
    add(segment, which, {counted == nullptr ? cpu_squares(matrix) : cpu_row_sums(matrix, counted).squares});
    return;
  }
  at::Tensor squares_of_rows = as_rows(x).to(at::kDouble).square().sum(1);
  if (real.defined()) squares_of_rows = squares_of_rows * real.reshape({-1});
  sums_[static_cast<std::int64_t>(segment)][which].add_(squares_of_rows.sum());
}

void StreamMeter::forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                               const Batch& batch) {
  Shape& shape = shapes_[segment];
  if (shape.has_stream) {
    add_rows(segment, output.x, batch.real);
    shape.features = static_cast<double>(row_shape(output.x).features);
  }
  shape.has_norm_input = inside.norm_input.defined();
  if (shape.has_norm_input) {
    // What enters norm_in is the stream that the segment before has just measured.
    shape.norm_input_is_stream = input.x.defined() && inside.norm_input.data_ptr() == input.x.data_ptr();
    shape.norm_input_features = static_cast<double>(row_shape(inside.norm_input).features);
    if (!shape.norm_input_is_stream) add_squares(segment, norm_input_squares, inside.norm_input, batch.real);
  }
  shape.has_branch = inside.branch_squares || inside.branch.defined();
  if (inside.branch_squares)
    add(segment, branch_squares, {*inside.branch_squares});
  else if (shape.has_branch)
    add_squares(segment, branch_squares, inside.branch, batch.real);
}

void StreamMeter::gradient_arrived(std::size_t segment, const Stream& gradient) {
  if (!shapes_[segment].has_stream || !gradient.x.defined()) return;
  shapes_[segment].measured_gradient = true;
  add_squares(segment, gradient_squares, gradient.x, {});
}

void StreamMeter::gather(Readout& readout) {
  readout.add(sums_, [this](const double* numbers) { read_.assign(numbers, numbers + sums_.numel()); });
}

std::vector<StreamStatistics> StreamMeter::statistics() const {
  const bool elsewhere = stays_on_device(sums_);
  const std::vector<double> fetched = elsewhere && read_.empty() ? read_back(sums_) : std::vector<double>();
  const double* all = !elsewhere ? sums_.data_ptr<double>() : fetched.empty() ? read_.data() : fetched.data();
  const auto ratio = [](double numerator, double denominator) {
    return denominator == 0 ? std::nullopt : std::optional(numerator / denominator);
  };
  const auto rms = [&](double squares_sum, double count) -> std::optional<double> {
    return count == 0 ? std::nullopt : std::optional(std::sqrt(squares_sum / count));
  };
  std::vector<StreamStatistics> statistics(shapes_.size());
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const Shape& shape = shapes_[s];
    const double* own = all + s * sum_count;
    const double* before = s == 0 ? nullptr : own - sum_count;
    StreamStatistics& row = statistics[s];
    if (shape.has_stream) {
      row.stream_mean = ratio(own[sum], own[rows] * shape.features);
      row.stream_variance = ratio(own[variance_sum], own[rows]);
      row.stream_rms = rms(own[squares], own[rows] * shape.features);
      if (shape.measured_gradient) row.stream_grad_norm = std::sqrt(own[gradient_squares]);
    }
    if (shape.has_norm_input) {
      const double counted_rows = shape.has_stream ? own[rows] : before[rows];
      row.norm_input_rms = rms(shape.norm_input_is_stream ? before[squares] : own[norm_input_squares],
                               counted_rows * shape.norm_input_features);
    }
    if (shape.has_branch) {
      row.branch_rms = rms(own[branch_squares], own[rows] * shape.features);
      const std::optional<double> entering = rms(before[squares], before[rows] * shapes_[s - 1].features);
      if (row.branch_rms && entering) row.branch_ratio = ratio(*row.branch_rms, *entering);
    }
  }
  return statistics;
}

}  // namespace gradflow
