#include "kernels/cross_entropy.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>
//
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

constexpr float log2_e = std::numbers::log2e_v<float>;

double CrossEntropySum(std::size_t rows, std::size_t classes, const float* logits, const std::int64_t* targets,
                       float* shifts_and_logs) {
  const Tag d;
  double loss = 0;
  for (std::size_t row = 0; row < rows; ++row, logits += classes) {
    Vector largest = hn::Set(d, -std::numeric_limits<float>::infinity());
    const Vector some = hn::Set(d, logits[0]);
    for_each_vector(classes, [&](std::size_t i, auto access) HWY_ATTR {
      largest = hn::Max(largest, access.filled(access.load(logits + i), some));
    });
    const float shift = hn::GetLane(hn::MaxOfLanes(d, largest));
    const Vector shifts = hn::Set(d, shift), factor = hn::Set(d, log2_e);
    Vector sum = hn::Zero(d);
    for_each_vector(classes, [&](std::size_t i, auto access) HWY_ATTR {
      sum = hn::Add(sum, access.only(exp2(hn::Mul(hn::Sub(access.load(logits + i), shifts), factor))));
    });
    const float log_sum = std::log2(total(sum));
    shifts_and_logs[2 * row] = shift;
    shifts_and_logs[2 * row + 1] = log_sum;
    if (targets[row] >= 0)
      loss += static_cast<double>(shift - logits[targets[row]]) + static_cast<double>(log_sum) * std::numbers::ln2;
  }
  return loss;
}

void CrossEntropyBackward(std::size_t rows, std::size_t classes, const float* logits, const std::int64_t* targets,
                          const float* shifts_and_logs, float factor, float* gradient) {
  const Tag d;
  const Vector factors = hn::Set(d, factor), to_base_2 = hn::Set(d, log2_e);
  for (std::size_t row = 0; row < rows; ++row, logits += classes, gradient += classes) {
    if (targets[row] < 0) {
      std::memset(gradient, 0, classes * sizeof(float));
      continue;
    }
    const Vector shift = hn::Set(d, shifts_and_logs[2 * row]), log_sum = hn::Set(d, shifts_and_logs[2 * row + 1]);
    for_each_vector(classes, [&](std::size_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(exp2(hn::MulSub(hn::Sub(access.load(logits + i), shift), to_base_2, log_sum)), factors),
                   gradient + i);
    });
    gradient[targets[row]] -= factor;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(CrossEntropySum);
HWY_EXPORT(CrossEntropyBackward);

double cross_entropy_sum(std::size_t rows, std::size_t classes, const float* logits, const std::int64_t* targets,
                         float* shifts_and_logs) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropySum)(rows, classes, logits, targets, shifts_and_logs);
}

void cross_entropy_backward(std::size_t rows, std::size_t classes, const float* logits, const std::int64_t* targets,
                            const float* shifts_and_logs, float factor, float* gradient) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyBackward)(rows, classes, logits, targets, shifts_and_logs, factor, gradient);
}

}  // namespace gradflow
#endif
