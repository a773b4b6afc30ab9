#include "data/question.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/requirements.h"

namespace gradflow {

namespace {

bool is_prime(std::int64_t number) {
  for (std::int64_t divisor = 2; divisor * divisor <= number; ++divisor)
    if (number % divisor == 0) return false;
  return number >= 2;
}

std::int64_t largest_prime_up_to(std::int64_t bound) {
  while (!is_prime(bound)) --bound;
  return bound;
}

/// The most frequent symbols, in rising order.
std::vector<std::int64_t> most_frequent(std::span<const std::int64_t> symbols) {
  std::vector<std::int64_t> sorted(symbols.begin(), symbols.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> modes;
  std::ptrdiff_t most = 0;
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::upper_bound(first, sorted.end(), *first);
    if (last - first > most) modes.clear();
    if (last - first >= most) modes.push_back(*first);
    most = std::max(most, last - first);
    first = last;
  }
  return modes;
}

}  // namespace

MajorityTask::MajorityTask(const DataConfig& data) {
  facts_.vocabulary = vocabulary_of(data, 2);
  facts_.unigram_entropy = std::log(static_cast<double>(facts_.vocabulary));
  facts_.entropy_rate = 0;
}

void MajorityTask::draw(const SequenceDraw& draw, std::span<std::int64_t> inputs,
                        std::span<std::int64_t> targets) const {
  const std::size_t length = inputs.size();
  for (std::size_t t = 0; t < length; ++t) inputs[t] = draw.below(facts_.vocabulary, t);
  const std::vector<std::int64_t> modes = most_frequent(inputs);
  std::int64_t winner = modes.front();
  if (modes.size() > 1) {
    winner = modes[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(modes.size()), length))];
    const std::int64_t others =
        std::count_if(inputs.begin(), inputs.end(), [&](auto symbol) { return symbol != winner; });
    std::int64_t skip = draw.below(others, length + 1);
    *std::find_if(inputs.begin(), inputs.end(), [&](auto symbol) { return symbol != winner && skip-- == 0; }) = winner;
  }
  std::fill(targets.begin(), targets.end(), no_target);
  targets.back() = winner;
}

ModularTask::ModularTask(const DataConfig& data) : modulus_(largest_prime_up_to(vocabulary_of(data, 3) - 1)) {
  require_tokens(data, 3);
  facts_.vocabulary = vocabulary_of(data, 3);
  facts_.unigram_entropy = std::log(static_cast<double>(modulus_));
  facts_.entropy_rate = 0;
}

void ModularTask::draw(const SequenceDraw& draw, std::span<std::int64_t> inputs,
                       std::span<std::int64_t> targets) const {
  std::fill(inputs.begin(), inputs.end(), facts_.vocabulary - 1);
  inputs[0] = draw.below(modulus_, 0);
  inputs[1] = draw.below(modulus_, 1);
  std::fill(targets.begin(), targets.end(), no_target);
  targets.back() = (inputs[0] + inputs[1]) % modulus_;
}

}  // namespace gradflow
