#pragma once

#include <cstddef>
#include <cstdint>

namespace gradflow {

/// Σ over the rows that have a target of −ln softmax(logits)[target], in nats, added in double; logits [rows, classes],
/// targets [rows], negative where nothing is asked. Keeps of each row the
/// largest logit and log₂ Σ exp(logit − largest), apart so that large logits cost no accuracy: `shifts_and_logs`
/// [rows, 2].
double cross_entropy_sum(std::size_t rows, std::size_t classes, const float* logits, const std::int64_t* targets,
                         float* shifts_and_logs);
/// gradient [rows, classes] = factor·(softmax(logits) − onehot(target)), 0 in rows without a target.
void cross_entropy_backward(std::size_t rows, std::size_t classes, const float* logits, const std::int64_t* targets,
                            const float* shifts_and_logs, float factor, float* gradient);

}  // namespace gradflow
