#pragma once

#include <optional>
#include <vector>

#include "measure/readout.h"
#include "model/stack.h"

namespace gradflow {

/// The columns of layers.csv that are measured at the boundaries, for one segment; absent: there is no such thing.
/// Definitions: the column list in output/columns.cpp.
struct StreamStatistics {
  std::optional<double> norm_input_rms;
  std::optional<double> stream_mean, stream_variance, stream_rms;
  std::optional<double> stream_grad_norm;
  std::optional<double> branch_rms, branch_ratio;
};

/// Measures stream, branch and gradient of every segment while the micro-batches of one step pass, pooled over them.
/// All sums are in double. On the CPU they are added at once; on a device they stay there in one buffer, which takes
/// part in the transfer of a step (`gather`); without one, `statistics()` makes its own.
class StreamMeter final : public Watcher {
 public:
  StreamMeter(const Layout& layout, at::Device device);

  /// Forgets the last step.
  void reset();
  void forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch& batch) override;
  void gradient_arrived(std::size_t segment, const Stream& gradient) override;

  /// Everything since `reset` takes part in a transfer; nothing more may be measured before the next `reset`.
  void gather(Readout& readout);
  /// One entry a segment, over everything since `reset`.
  std::vector<StreamStatistics> statistics() const;

 private:
  enum Sum { rows, sum, squares, variance_sum, norm_input_squares, branch_squares, gradient_squares, sum_count };
  struct Shape {
    bool has_stream = false;  ///< a stream leaves this segment and belongs to its row
    bool measured_gradient = false;
    bool has_norm_input = false, norm_input_is_stream = false, has_branch = false;
    double features = 0;  ///< of one token of the stream
    double norm_input_features = 0;
  };

  void add(std::size_t segment, Sum first, std::initializer_list<double> values);
  void add_rows(std::size_t segment, const at::Tensor& x, const at::Tensor& real);
  void add_squares(std::size_t segment, Sum which, const at::Tensor& x, const at::Tensor& real);

  std::vector<Shape> shapes_;
  at::Tensor sums_;           // [segments, sum_count], float64, on the device
  std::vector<double> read_;  // the same on the host, once gathered and read
};

}  // namespace gradflow
