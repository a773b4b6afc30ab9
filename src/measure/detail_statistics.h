#pragma once

#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "measure/readout.h"
#include "model/stack.h"

namespace gradflow {

/// The columns of layers.csv in the set `all`. Definitions: the column list in output/columns.cpp.
enum class Detail {
  branch_cosine,
  branch_variance_gain,
  token_norm_cv,
  branch_norm_cv,
  mean_share,
  stream_grad_cosine,
  dual_rms,
  dual_grad_norm,
  skip_grad_share,
  attention_entropy,
  attention_logit_max,
  zero_fraction,
  angular_distance,
  token_diversity_db
};
inline constexpr std::size_t detail_count = 14;
inline constexpr std::array<std::string_view, detail_count> names_of(Detail) {
  return {"branch_cosine",     "branch_variance_gain", "token_norm_cv",
          "branch_norm_cv",    "mean_share",           "stream_grad_cosine",
          "dual_rms",          "dual_grad_norm",       "skip_grad_share",
          "attention_entropy", "attention_logit_max",  "zero_fraction",
          "angular_distance",  "token_diversity_db"};
}

/// A number for each detail of one segment; absent: there is no such thing, or it was not asked for.
using Details = std::array<std::optional<double>, detail_count>;

/// Measures the details asked for while the micro-batches of one step pass, pooled over them. Everything in double,
/// with operators that run where the stack is; all numbers take part in the transfer of a step (`gather`), or
/// `details()` makes its own.
///
/// Padding is left out, except from gradients, which are sums over everything that the loss depends on. A token whose
/// value does not exist (a cosine with a zero vector) is left out of the mean; with no token left there is no value.
class DetailMeter final : public Watcher {
 public:
  DetailMeter(const Config& config, const Layout& layout, std::set<Detail> wanted);

  /// Forgets the last step.
  void reset();
  Taps taps() const override;
  void forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                    const Batch& batch) override;
  void gradient_arrived(std::size_t segment, const Stream& gradient) override;
  void skip_gradient_found(std::size_t segment, const at::Tensor& gradient) override;

  /// Everything since `reset` takes part in a transfer; nothing more may be measured before the next `reset`.
  void gather(Readout& readout);
  /// One entry a segment, over everything since `reset`.
  std::vector<Details> details() const;

 private:
  bool wants(Detail detail) const { return wanted_.contains(detail); }
  /// Notes numbers of one micro-batch, scalars on the device.
  void note(std::size_t segment, Detail detail, const std::vector<at::Tensor>& numbers);
  void look_at_branch(std::size_t segment, const Inside& inside, const at::Tensor& real);
  void look_at_attention(std::size_t segment, const Inside& inside, const at::Tensor& real);
  void look_at_stream(std::size_t segment, const Stream& input, const Stream& output, const at::Tensor& real);

  struct Place {
    std::size_t segment;
    Detail detail;
  };

  std::set<Detail> wanted_;
  bool causal_;
  bool second_stream_;                // ResiDual's; B2T's second tensor is the block's input
  std::vector<bool> has_stream_;      // a segment
  std::size_t last_of_blocks_;        // the segment behind which the last block ends
  at::Tensor gradient_after_blocks_;  // of the micro-batch that is on its way down
  std::vector<Place> places_;         // one a note
  std::vector<at::Tensor> notes_;     // [numbers a note]
  std::vector<double> read_;          // all notes on the host, once gathered and read
};

}  // namespace gradflow
