#include "kernels/attention.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <hwy/foreach_target.h>
//
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/prefetch.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// Queries lie in the lanes: a block of as many queries as a vector has lanes goes through scores, softmax and gradients
// together, key by key, so that no sum ever runs across lanes. Probabilities are never stored between the passes.

/// Accumulators that a register file holds beside two operands.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
constexpr std::size_t most_accumulators = 16;
#else
constexpr std::size_t most_accumulators = 8;
#endif

/// How the scalars a(u, k) of a small product lie in memory: from u to u + 1 `fixed` floats, or `step` where that is 0.
/// A step that the compiler does not know costs as much as the arithmetic: sixteen addresses for sixteen outputs.
template <std::size_t fixed>
struct Scalars {
  const float* at;
  std::size_t per_term;  ///< from k to k + 1
  std::size_t step = fixed;
  constexpr std::size_t per_output() const { return fixed != 0 ? fixed : step; }
};

/// out[u·out_step …] (+)= factor·Σ_k a(u, k)·b[k·b_step …] for `count` outputs, each one vector.
template <std::size_t count, bool add, std::size_t fixed>
HWY_INLINE void outputs(const Scalars<fixed>& a, const float* b, std::size_t b_step, std::size_t terms, float factor,
                        float* out, std::size_t out_step) {
  const Tag d;
  Vector sums[count];
  for (std::size_t u = 0; u < count; ++u) sums[u] = add ? hn::LoadU(d, out + u * out_step) : hn::Zero(d);
  const float* scalars = a.at;
  for (std::size_t k = 0; k < terms; ++k, scalars += a.per_term, b += b_step) {
    const Vector row = hn::LoadU(d, b);
#pragma GCC unroll 16
    for (std::size_t u = 0; u < count; ++u) sums[u] = hn::MulAdd(hn::Set(d, scalars[u * a.per_output()]), row, sums[u]);
  }
  for (std::size_t u = 0; u < count; ++u)
    hn::StoreU(add ? sums[u] : hn::Mul(sums[u], hn::Set(d, factor)), d, out + u * out_step);
}

/// The same for any number of outputs.
template <bool add, std::size_t fixed>
HWY_INLINE void small_product(Scalars<fixed> a, const float* b, std::size_t b_step, std::size_t terms, float factor,
                              float* out, std::size_t out_step, std::size_t count) {
  const auto step = [&](std::size_t done) {
    a.at += done * a.per_output();
    out += done * out_step;
    count -= done;
  };
  while (count >= most_accumulators) {
    outputs<most_accumulators, add>(a, b, b_step, terms, factor, out, out_step);
    step(most_accumulators);
  }
  while (count >= 8) {
    outputs<8, add>(a, b, b_step, terms, factor, out, out_step);
    step(8);
  }
  while (count >= 4) {
    outputs<4, add>(a, b, b_step, terms, factor, out, out_step);
    step(4);
  }
  while (count >= 1) {
    outputs<1, add>(a, b, b_step, terms, factor, out, out_step);
    step(1);
  }
}

/// Working memory of one head. "T": features in rows, tokens in lanes, [head_width, padded_tokens]; else tokens in
/// rows, [padded_tokens, padded_width]. What lies beyond the tokens and the head's width is zero.
struct Head {
  explicit Head(const AttentionShape& shape, float* scratch)
      : tokens(shape.tokens),
        width(shape.head_width()),
        padded_tokens(shape.padded_tokens()),
        padded_width((width + 15) / 16 * 16) {
    const std::size_t matrix = padded_tokens * padded_width;
    for (float** part : {&query_t, &query, &key, &value, &out_t, &gradient_t, &gradient, &key_gradient, &value_gradient,
                         &query_gradient_t}) {
      *part = scratch;
      scratch += matrix;
    }
    scores = scratch;
    score_gradients = scratch + padded_tokens * lane_count;
  }

  std::size_t tokens, width, padded_tokens, padded_width;
  float *query_t, *query, *key, *value, *out_t, *gradient_t, *gradient, *key_gradient, *value_gradient,
      *query_gradient_t;
  float *scores, *score_gradients;  // of one block of queries: [tokens, lanes]
};

/// rows [tokens, padded_width] = (from + bias)·factor, from with `step` floats a token.
HWY_INLINE void read_rows(const Head& head, const float* from, std::size_t step, const float* bias, float factor,
                          float* rows) {
  const Tag d;
  const Vector factors = hn::Set(d, factor);
  for (std::size_t t = 0; t < head.padded_tokens; ++t, from += step, rows += head.padded_width) {
    if (t >= head.tokens) {
      std::memset(rows, 0, head.padded_width * sizeof(float));
      continue;
    }
    for_each_vector(head.width, [&](std::size_t i, auto access) HWY_ATTR {
      Vector v = access.load(from + i);
      if (bias != nullptr) v = hn::Add(v, access.load(bias + i));
      hn::StoreU(access.only(hn::Mul(v, factors)), d, rows + i);
    });
  }
}

/// to[c][r] = from[r][c] for four rows and four columns.
HWY_INLINE void transpose_four(const float* from, std::size_t from_step, float* to, std::size_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < 4; ++c) to[c * to_step + r] = from[r * from_step + c];
#else
  const hn::FixedTag<float, 4> four;
  const hn::FixedTag<double, 2> pairs;
  const auto load = [&](std::size_t r) HWY_ATTR { return hn::LoadU(four, from + r * from_step); };
  const auto a = load(0), b = load(1), c = load(2), e = load(3);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(four, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(four, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(four, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(four, c, e));
  const auto store = [&](auto v, std::size_t row)
                         HWY_ATTR { hn::StoreU(hn::BitCast(four, v), four, to + row * to_step); };
  store(hn::InterleaveLower(pairs, ab_low, ce_low), 0);
  store(hn::InterleaveUpper(pairs, ab_low, ce_low), 1);
  store(hn::InterleaveLower(pairs, ab_high, ce_high), 2);
  store(hn::InterleaveUpper(pairs, ab_high, ce_high), 3);
#endif
}

/// [padded_tokens, padded_width] → its first columns in rows.
HWY_INLINE void to_lanes(const Head& head, const float* rows, float* lanes) {
  for (std::size_t t = 0; t < head.padded_tokens; t += 4)
    for (std::size_t c = 0; c < head.width; c += 4)
      transpose_four(rows + t * head.padded_width + c, head.padded_width, lanes + c * head.padded_tokens + t,
                     head.padded_tokens);
}

/// The way back, into `rows`.
HWY_INLINE void to_rows(const Head& head, const float* lanes, float* rows) {
  for (std::size_t c = 0; c < head.width; c += 4)
    for (std::size_t t = 0; t < head.padded_tokens; t += 4)
      transpose_four(lanes + c * head.padded_tokens + t, head.padded_tokens, rows + t * head.padded_width + c,
                     head.padded_width);
}

/// to[t·step …] = factor·rows.
HWY_INLINE void write_rows(const Head& head, const float* rows, float factor, float* to, std::size_t step) {
  const Vector factors = hn::Set(Tag(), factor);
  for (std::size_t t = 0; t < head.tokens; ++t, rows += head.padded_width, to += step)
    for_each_vector(head.width, [&](std::size_t i, auto access)
                                    HWY_ATTR { access.store(hn::Mul(access.load(rows + i), factors), to + i); });
}

/// Which keys a block of queries sees: all of it sees the first `everyone`, only later lanes the others up to `end`.
struct Seen {
  std::size_t everyone;
  std::size_t end;
};

HWY_INLINE Seen keys_seen(const AttentionShape& shape, std::size_t first_query, std::size_t visible) {
  if (!shape.causal) return {visible, visible};
  return {std::min(first_query + 1, visible), std::min(first_query + lane_count, visible)};
}

/// Lanes whose query does not see key `key`: those before it.
HWY_INLINE hn::Mask<Tag> blind(std::size_t first_query, std::size_t key) {
  return hn::FirstN(Tag(), key - first_query);
}

/// Of head h in sequence s.
HWY_INLINE float* statistics_of(const AttentionShape& shape, float* all, std::size_t s, std::size_t h) {
  return all + (s * shape.heads + h) * 2 * shape.padded_tokens();
}

/// Scores are kept in base 2: the queries carry log₂e/√head_width.
HWY_INLINE float query_factor(const AttentionShape& shape) {
  return std::numbers::log2e_v<float> / std::sqrt(static_cast<float>(shape.head_width()));
}

/// scores [end, lanes] of the block of queries that begins at `first`.
HWY_INLINE void block_scores(const Head& head, std::size_t first, std::size_t end, const float* rows,
                             const float* lanes, float* scores) {
  const auto product = [&](const auto& scalars) HWY_ATTR {
    small_product<false>(scalars, lanes + first, head.padded_tokens, head.width, 1, scores, lane_count, end);
  };
  switch (head.padded_width) {
    case 16: return product(Scalars<16>{rows, 1});
    case 32: return product(Scalars<32>{rows, 1});
    case 64: return product(Scalars<64>{rows, 1});
    default: return product(Scalars<0>{rows, 1, head.padded_width});
  }
}

void softmax_block(const Head& head, std::size_t first, const Seen& seen, float* shift, float* inverse) {
  const Tag d;
  Vector largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (std::size_t j = 0; j < seen.everyone; ++j) largest = hn::Max(largest, hn::Load(d, head.scores + j * lane_count));
  for (std::size_t j = seen.everyone; j < seen.end; ++j)
    largest = hn::IfThenElse(blind(first, j), largest, hn::Max(largest, hn::Load(d, head.scores + j * lane_count)));
  Vector sum = hn::Zero(d);
  for (std::size_t j = 0; j < seen.everyone; ++j) {
    float* const score = head.scores + j * lane_count;
    const Vector p = exp2(hn::Sub(hn::Load(d, score), largest));
    sum = hn::Add(sum, p);
    hn::Store(p, d, score);
  }
  for (std::size_t j = seen.everyone; j < seen.end; ++j) {
    float* const score = head.scores + j * lane_count;
    const Vector p = hn::IfThenZeroElse(blind(first, j), exp2(hn::Sub(hn::Load(d, score), largest)));
    sum = hn::Add(sum, p);
    hn::Store(p, d, score);
  }
  hn::StoreU(largest, d, shift + first);
  hn::StoreU(hn::Div(hn::Set(d, 1.0f), sum), d, inverse + first);
}

void AttentionForward(const AttentionShape& shape, const float* qkv, const AttentionBiases& biases,
                      const std::int64_t* visible, float* out, float* statistics, float* scratch) {
  const Tag d;
  const std::size_t width = shape.width, row = 3 * width;
  Head head(shape, scratch);
  for (std::size_t s = 0; s < shape.sequences; ++s) {
    const std::size_t keys = visible != nullptr ? static_cast<std::size_t>(visible[s]) : shape.tokens;
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const std::size_t column = h * head.width;
      const float* const of_head = qkv + s * shape.tokens * row + column;
      const auto bias = [&](const float* all) { return all != nullptr ? all + column : nullptr; };
      read_rows(head, of_head, row, bias(biases.query), query_factor(shape), head.query);
      to_lanes(head, head.query, head.query_t);
      read_rows(head, of_head + width, row, bias(biases.key), 1, head.key);
      read_rows(head, of_head + 2 * width, row, bias(biases.value), 1, head.value);
      float* const shift = statistics_of(shape, statistics, s, h);
      float* const inverse = shift + head.padded_tokens;
      for (std::size_t first = 0; first < shape.tokens; first += lane_count) {
        const Seen seen = keys_seen(shape, first, keys);
        block_scores(head, first, seen.end, head.key, head.query_t, head.scores);
        softmax_block(head, first, seen, shift, inverse);
        small_product<false>(Scalars<1>{head.value, head.padded_width}, head.scores, lane_count, seen.end, 1,
                             head.out_t + first, head.padded_tokens, head.width);
        const Vector factor = hn::LoadU(d, inverse + first);
        for (std::size_t c = 0; c < head.width; ++c) {
          float* const o = head.out_t + c * head.padded_tokens + first;
          hn::StoreU(hn::Mul(hn::LoadU(d, o), factor), d, o);
        }
      }
      to_rows(head, head.out_t, head.gradient);
      write_rows(head, head.gradient, 1, out + s * shape.tokens * width + column, width);
    }
  }
}

/// From scores and dL/dprobability of a block to probabilities and dL/dscore: p·(g − Σ p·g).
void softmax_gradient_block(const Head& head, std::size_t first, const Seen& seen, const float* shift,
                            const float* inverse) {
  const Tag d;
  const Vector shifts = hn::LoadU(d, shift + first), factor = hn::LoadU(d, inverse + first);
  Vector sum = hn::Zero(d);
  for (std::size_t j = 0; j < seen.end; ++j) {
    float* const score = head.scores + j * lane_count;
    Vector p = hn::Mul(exp2(hn::Sub(hn::Load(d, score), shifts)), factor);
    if (j >= seen.everyone) p = hn::IfThenZeroElse(blind(first, j), p);
    hn::Store(p, d, score);
    sum = hn::MulAdd(p, hn::Load(d, head.score_gradients + j * lane_count), sum);
  }
  for (std::size_t j = 0; j < seen.end; ++j) {
    float* const gradient = head.score_gradients + j * lane_count;
    const Vector p = hn::Load(d, head.scores + j * lane_count);
    hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, gradient), sum)), d, gradient);
  }
}

/// to[j] += Σ_i scalars[j][i]·rows[first + i]: what the block's queries add to the rows of keys or values.
HWY_INLINE void add_to_rows(const Head& head, const float* scalars, const float* rows, std::size_t first,
                            std::size_t end, float* to) {
  for (std::size_t c = 0; c < head.width; c += lane_count)
    small_product<true>(Scalars<lane_count>{scalars, 1}, rows + first * head.padded_width + c, head.padded_width,
                        lane_count, 1, to + c, head.padded_width, end);
}

void AttentionBackward(const AttentionShape& shape, const float* qkv, const AttentionBiases& biases,
                       const std::int64_t* visible, const float* out_gradient, const float* statistics,
                       float* qkv_gradient, float* scratch) {
  const std::size_t width = shape.width, row = 3 * width, of_sequence = shape.tokens * row;
  const float to_scores = 1 / std::sqrt(static_cast<float>(shape.head_width()));
  Head head(shape, scratch);
  const std::size_t matrix = head.padded_tokens * head.padded_width * sizeof(float);
  for (std::size_t s = 0; s < shape.sequences; ++s) {
    const std::size_t keys = visible != nullptr ? static_cast<std::size_t>(visible[s]) : shape.tokens;
    // Heads read single lines of every row, which no processor foresees.
    Prefetch following(qkv + (s + 1) * of_sequence, s + 1 < shape.sequences ? of_sequence : 0,
                       shape.heads * (head.padded_tokens / lane_count));
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const std::size_t column = h * head.width;
      const float* const of_head = qkv + s * shape.tokens * row + column;
      const auto bias = [&](const float* all) { return all != nullptr ? all + column : nullptr; };
      read_rows(head, of_head, row, bias(biases.query), query_factor(shape), head.query);
      to_lanes(head, head.query, head.query_t);
      read_rows(head, of_head + width, row, bias(biases.key), 1, head.key);
      read_rows(head, of_head + 2 * width, row, bias(biases.value), 1, head.value);
      read_rows(head, out_gradient + s * shape.tokens * width + column, width, nullptr, 1, head.gradient);
      to_lanes(head, head.gradient, head.gradient_t);
      std::memset(head.key_gradient, 0, matrix);
      std::memset(head.value_gradient, 0, matrix);
      const float* const shift = statistics + (s * shape.heads + h) * 2 * head.padded_tokens;
      const float* const inverse = shift + head.padded_tokens;
      for (std::size_t first = 0; first < shape.tokens; first += lane_count) {
        following.next();
        const Seen seen = keys_seen(shape, first, keys);
        block_scores(head, first, seen.end, head.key, head.query_t, head.scores);
        block_scores(head, first, seen.end, head.value, head.gradient_t, head.score_gradients);
        softmax_gradient_block(head, first, seen, shift, inverse);
        add_to_rows(head, head.scores, head.gradient, first, seen.end, head.value_gradient);
        add_to_rows(head, head.score_gradients, head.query, first, seen.end, head.key_gradient);
        small_product<false>(Scalars<1>{head.key, head.padded_width}, head.score_gradients, lane_count, seen.end,
                             to_scores, head.query_gradient_t + first, head.padded_tokens, head.width);
      }
      float* const gradient = qkv_gradient + s * shape.tokens * row + column;
      to_rows(head, head.query_gradient_t, head.gradient);
      write_rows(head, head.gradient, 1, gradient, row);
      // Its scores came from queries that carry log₂e/√head_width; the gradient wants 1/√head_width.
      write_rows(head, head.key_gradient, std::numbers::ln2_v<float>, gradient + width, row);
      write_rows(head, head.value_gradient, 1, gradient + 2 * width, row);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace gradflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gradflow {

HWY_EXPORT(AttentionForward);
HWY_EXPORT(AttentionBackward);

std::size_t AttentionShape::scratch_size() const {
  constexpr std::size_t matrices = 10, blocks = 2, most_lanes = 16;
  return padded_tokens() * (matrices * ((head_width() + 15) / 16 * 16) + blocks * most_lanes);
}

void attention_forward(const AttentionShape& shape, const float* qkv, const AttentionBiases& biases,
                       const std::int64_t* visible, float* out, float* statistics, float* scratch) {
  HWY_DYNAMIC_DISPATCH(AttentionForward)(shape, qkv, biases, visible, out, statistics, scratch);
}

void attention_backward(const AttentionShape& shape, const float* qkv, const AttentionBiases& biases,
                        const std::int64_t* visible, const float* out_gradient, const float* statistics,
                        float* qkv_gradient, float* scratch) {
  HWY_DYNAMIC_DISPATCH(AttentionBackward)
  (shape, qkv, biases, visible, out_gradient, statistics, qkv_gradient, scratch);
}

}  // namespace gradflow
#endif
