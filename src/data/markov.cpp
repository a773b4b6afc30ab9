#include "data/markov.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "data/entropy.h"
#include "data/requirements.h"

namespace gradflow {

namespace {

/// Moves a uniformly drawn element of values[i…] to place i, for i = 0…count−1: a random choice in random order.
void shuffle_front(std::vector<std::int64_t>& values, std::size_t count, const RandomStream& stream,
                   std::uint64_t& used) {
  for (std::size_t i = 0; i < count; ++i) std::swap(values[i], values[i + stream.below(values.size() - i, used++)]);
}

}  // namespace

MarkovTask::MarkovTask(const DataConfig& data) : symbols_(vocabulary_of(data, 2)), successors_each_(data.successors) {
  if (successors_each_ > symbols_)
    throw Error(
        fmt::format("data.successors: {0} distinct successors of {1} symbols; write at most {1}, or raise "
                    "data.vocabulary",
                    successors_each_, symbols_));
  for (std::int64_t rank = 0; rank < successors_each_; ++rank)
    probabilities_.push_back(std::exp2(-static_cast<double>(std::min(rank + 1, successors_each_ - 1))));
  draw_successors(static_cast<std::uint64_t>(data.seed));
  find_stationary();
  facts_.vocabulary = symbols_;
  facts_.unigram_entropy = entropy(stationary_);
  facts_.entropy_rate = entropy(probabilities_);
}

void MarkovTask::draw_successors(std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(symbols_);
  const auto each = static_cast<std::size_t>(successors_each_);
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);

  std::uint64_t used = 0;
  shuffle_front(order, count, RandomStream(seed, "data.markov.cycle"), used);
  std::vector<std::int64_t> next(count);
  for (std::size_t i = 0; i < count; ++i) next[static_cast<std::size_t>(order[i])] = order[(i + 1) % count];

  const RandomStream stream(seed, "data.markov.successors");
  used = 0;
  for (std::size_t symbol = 0; symbol < count; ++symbol) {
    // Of `each` distinct symbols one is left out to make room for the cycle's: the cycle's itself if it is among them.
    shuffle_front(order, each, stream, used);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(each);
    const auto last = std::find(order.begin(), end, next[symbol]);
    for (auto place = order.begin(); place != end; ++place)
      if (place != (last == end ? end - 1 : last)) successors_.push_back(*place);
    successors_.push_back(next[symbol]);
  }
}

/// Power iteration of (P + 1)/2, which has the same stationary distribution as P and no period.
void MarkovTask::find_stationary() {
  constexpr int most_rounds = 10'000;
  const auto count = static_cast<std::size_t>(symbols_);
  const auto each = static_cast<std::size_t>(successors_each_);
  stationary_.assign(count, 1 / static_cast<double>(count));
  std::vector<double> next(count);
  double change = 1;
  for (int round = 0; change > 1e-14 && round < most_rounds; ++round) {
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t symbol = 0; symbol < count; ++symbol) {
      next[symbol] += stationary_[symbol] / 2;
      for (std::size_t rank = 0; rank < each; ++rank)
        next[static_cast<std::size_t>(successors_[symbol * each + rank])] +=
            stationary_[symbol] / 2 * probabilities_[rank];
    }
    change = 0;
    for (std::size_t symbol = 0; symbol < count; ++symbol)
      change = std::max(change, std::abs(next[symbol] - stationary_[symbol]) * static_cast<double>(count));
    std::swap(stationary_, next);
  }
  const double total = std::accumulate(stationary_.begin(), stationary_.end(), 0.0);
  for (double& probability : stationary_) probability /= total;
  cumulative_.resize(count);
  std::partial_sum(stationary_.begin(), stationary_.end(), cumulative_.begin());
}

std::int64_t MarkovTask::first_symbol(double uniform) const {
  const auto place = std::upper_bound(cumulative_.begin(), cumulative_.end(), uniform);
  return std::min<std::int64_t>(place - cumulative_.begin(), symbols_ - 1);  // the sum may round to less than 1
}

std::span<const std::int64_t> MarkovTask::successors(std::int64_t symbol) const {
  return {&successors_[static_cast<std::size_t>(symbol * successors_each_)],
          static_cast<std::size_t>(successors_each_)};
}

void MarkovTask::draw(const SequenceDraw& draw, std::span<std::int64_t> inputs, std::span<std::int64_t> targets) const {
  std::int64_t symbol = first_symbol(draw.uniform(0));
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    inputs[t] = symbol;
    // The number of leading zeros of random bits is r with probability 2^-(r+1).
    const std::int64_t rank = std::min<std::int64_t>(std::countl_zero(draw.bits(t + 1)), successors_each_ - 1);
    symbol = successors_[static_cast<std::size_t>(symbol * successors_each_ + rank)];
    targets[t] = symbol;
  }
}

}  // namespace gradflow
