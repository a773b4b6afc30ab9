#include "data/rearrangement.h"

#include <algorithm>
#include <cmath>

#include "data/requirements.h"

namespace gradflow {

RearrangementTask::RearrangementTask(const DataConfig& data)
    : task_(data.task), separator_(vocabulary_of(data, 3) - 1) {
  require_tokens(data, 3);
  facts_.vocabulary = separator_ + 1;
  facts_.unigram_entropy = std::log(static_cast<double>(separator_));
  facts_.entropy_rate = 0;
}

void RearrangementTask::draw(const SequenceDraw& draw, std::span<std::int64_t> inputs,
                             std::span<std::int64_t> targets) const {
  const std::size_t count = (inputs.size() - 1) / 2;
  const std::span<std::int64_t> symbols = inputs.first(count);
  const std::span<std::int64_t> answer = inputs.subspan(count + 1, count);
  std::fill(inputs.begin(), inputs.end(), separator_);
  for (std::size_t i = 0; i < count; ++i) symbols[i] = draw.below(separator_, i);
  std::copy(symbols.begin(), symbols.end(), answer.begin());
  if (task_ == Task::reverse) std::reverse(answer.begin(), answer.end());
  if (task_ == Task::sort) std::sort(answer.begin(), answer.end());
  std::fill(targets.begin(), targets.end(), no_target);
  std::copy(answer.begin(), answer.end(), targets.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace gradflow
