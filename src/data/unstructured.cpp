#include "data/unstructured.h"

#include <cmath>
#include <vector>

#include "data/entropy.h"
#include "data/requirements.h"

namespace gradflow {

RandomTask::RandomTask(const DataConfig& data) {
  facts_.vocabulary = vocabulary_of(data, 2);
  facts_.unigram_entropy = facts_.entropy_rate = std::log(static_cast<double>(facts_.vocabulary));
}

void RandomTask::draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const {
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    inputs[t] = t == 0 ? draw.below(facts_.vocabulary, 0) : targets[t - 1];
    targets[t] = draw.below(facts_.vocabulary, t + 1);
  }
}

QuadraticTask::QuadraticTask(const DataConfig& data, std::int64_t batch)
    : modulus_(static_cast<std::uint64_t>(vocabulary_of(data, 2))),
      context_(static_cast<std::uint64_t>(data.context)),
      batch_(static_cast<std::uint64_t>(batch)) {
  std::vector<double> counts(modulus_);
  for (std::uint64_t i = 0; i < modulus_; ++i) ++counts[target(i)];
  facts_.vocabulary = static_cast<std::int64_t>(modulus_);
  facts_.unigram_entropy = entropy(counts);
}

/// `i` is reduced already, so that its square does not overflow.
std::uint64_t QuadraticTask::target(std::uint64_t i) const { return (5 * i + i * i + 2) % modulus_; }

void QuadraticTask::draw(const SequenceDraw& draw, std::span<std::int64_t> inputs,
                         std::span<std::int64_t> targets) const {
  const std::uint64_t first = draw.number() % batch_ * context_ + 17 * (draw.number() / batch_);
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    const std::uint64_t i = (first + t) % modulus_;
    inputs[t] = static_cast<std::int64_t>((7 * i + 3 * i * i + 1) % modulus_);
    targets[t] = static_cast<std::int64_t>(target(i));
  }
}

}  // namespace gradflow
