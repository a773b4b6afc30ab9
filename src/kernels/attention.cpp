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

#include "kernels/fetch_ahead.h"
#include "kernels/transpose-inl.h"
#include "kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gradflow {
namespace HWY_NAMESPACE {
namespace {

// Queries lie in the lanes: a block of as many queries as a vector has lanes goes through scores, softmax and gradients
// together, key by key, so that no sum ever runs across lanes. Probabilities are never stored between the passes.

/// Accumulators that the registers hold beside two operands.
constexpr std::size_t most_accumulators = registers == 32 ? 16 : 8;

/// How the scalars a(u, k) of a small product lie in memory: from u to u + 1 `fixed` floats, or `step` where that is 0.
/// A step that the compiler does not know costs as much as the arithmetic: sixteen addresses for sixteen outputs.
template <std::size_t fixed>
struct Scalars {
  const float* at;
  std::size_t per_term;  ///< from k to k + 1
  std::size_t step = fixed;
  constexpr std::size_t per_output() const { return fixed != 0 ? fixed : step; }
};

/// finish(u, start(u) + Σ_k a(u, k)·b[k·b_step …]) for `count` outputs from the first on, each one vector.
template <std::size_t count, class D, std::size_t fixed, class Start, class Finish>
HWY_INLINE void outputs(D d, const Scalars<fixed>& a, const float* b, std::size_t b_step, std::size_t terms,
                        std::size_t first, const Start& start, const Finish& finish) {
  hn::Vec<D> sums[count];
  for (std::size_t u = 0; u < count; ++u) sums[u] = start(first + u);
  const float* scalars = a.at + first * a.per_output();
  for (std::size_t k = 0; k < terms; ++k, scalars += a.per_term, b += b_step) {
    const hn::Vec<D> row = hn::LoadU(d, b);
#pragma GCC unroll 16
    for (std::size_t u = 0; u < count; ++u) sums[u] = hn::MulAdd(hn::Set(d, scalars[u * a.per_output()]), row, sums[u]);
  }
  for (std::size_t u = 0; u < count; ++u) finish(first + u, sums[u]);
}

/// The same for any number of outputs.
template <class D, std::size_t fixed, class Start, class Finish>
HWY_INLINE void small_product(D d, const Scalars<fixed>& a, const float* b, std::size_t b_step, std::size_t terms,
                              std::size_t count, const Start& start, const Finish& finish) {
  std::size_t u = 0;
  for (; u + most_accumulators <= count; u += most_accumulators)
    outputs<most_accumulators>(d, a, b, b_step, terms, u, start, finish);
  for (; u + 8 <= count; u += 8) outputs<8>(d, a, b, b_step, terms, u, start, finish);
  for (; u + 4 <= count; u += 4) outputs<4>(d, a, b, b_step, terms, u, start, finish);
  for (; u < count; ++u) outputs<1>(d, a, b, b_step, terms, u, start, finish);
}

/// How most sums start.
constexpr auto from_zero = [](std::size_t) HWY_ATTR { return hn::Zero(Tag()); };

/// Working memory of one head. "_t": tokens in lanes, for each block of them [padded_width, lanes]; else tokens in
/// rows, [padded_tokens, padded_width], and what is read for the block behind the last token is zero.
struct Head {
  explicit Head(const AttentionShape& shape, float* scratch)
      : tokens(shape.tokens),
        width(shape.head_width()),
        padded_tokens(shape.padded_tokens()),
        padded_width(shape.padded_head_width()),
        whole(tokens % lane_count == 0 && width % 4 == 0) {
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
  bool whole;  ///< Transposing reads and writes whole vectors only, so it needs no padded copy.
  float *query_t, *query, *key, *value, *out_t, *gradient_t, *gradient, *key_gradient, *value_gradient,
      *query_gradient_t;
  float *scores, *score_gradients;  // of one block of queries: [tokens, lanes]
};

/// Of the vectors that rows of eight columns are made of: longer ones would reach into the next row.
using NarrowTag = hn::CappedTag<float, 8>;

/// Stores v in a row of [padded_tokens, padded_width], without what lies beyond its columns.
template <class D = Tag>
HWY_INLINE void store_columns(const Head& head, hn::Vec<D> v, float* row) {
  if constexpr (hn::MaxLanes(D()) > 8) {
    if (head.padded_width == 8) return hn::StoreU(hn::LowerHalf(hn::Half<D>(), v), hn::Half<D>(), row);
  }
  hn::StoreU(v, D(), row);
}

/// rows [tokens, padded_width] = from + bias, from with `step` floats a token.
HWY_INLINE void read_rows(const Head& head, const float* from, std::size_t step, const float* bias, float* rows) {
  const Tag d;
  for_each_vector(head.width, [&](std::size_t i, auto access) HWY_ATTR {
    const Vector biases = bias != nullptr ? access.load(bias + i) : hn::Zero(d);
    // Copies, which the compiler keeps in registers: for all it knows the stores might change the originals.
    const std::size_t tokens = head.tokens, in_step = step, row_step = head.padded_width;
    const float* in = from + i;
    float* row = rows + i;
    for (std::size_t t = 0; t < tokens; ++t, in += in_step, row += row_step)
      store_columns(head, access.only(hn::Add(access.load(in), biases)), row);
  });
  std::fill(rows + head.tokens * head.padded_width, rows + head.padded_tokens * head.padded_width, 0.0f);
}

/// to[t·step …] = rows for the first `count` tokens, 0 for the others.
HWY_INLINE void write_rows(const Head& head, const float* rows, std::size_t count, float* to, std::size_t step) {
  const Tag d;
  for_each_vector(head.width, [&](std::size_t i, auto access) HWY_ATTR {
    const std::size_t tokens = head.tokens, seen = count, out_step = step, row_step = head.padded_width;
    const float* row = rows + i;
    float* out = to + i;
    std::size_t t = 0;
    for (; t < seen; ++t, row += row_step, out += out_step) access.store(access.load(row), out);
    for (; t < tokens; ++t, out += out_step) access.store(hn::Zero(d), out);
  });
}

/// lanes = (rows + bias)·factor, rows with `step` floats a token. Without head.whole the rows must be padded, and the
/// bias be in them.
HWY_INLINE void to_lanes(const Head& head, const float* rows, std::size_t step, const float* bias, float factor,
                         float* lanes) {
  const Tag d;
  const Vector factors = hn::Set(d, factor);
  for (std::size_t t = 0; t < head.tokens; t += lane_count) {
    for (std::size_t c = 0; c < head.width; c += 4) {
      Vector v[4];
      load_four(rows + t * step + c, step, v);
      for (std::size_t i = 0; i < 4; ++i) {
        if (bias != nullptr) v[i] = hn::Add(v[i], hn::Set(d, bias[c + i]));
        hn::StoreU(hn::Mul(v[i], factors), d, lanes + t * head.padded_width + (c + i) * lane_count);
      }
    }
  }
}

/// to[t·step …] = lanes; `padded`: room for rows.
HWY_INLINE void write_lanes(const Head& head, const float* lanes, float* to, std::size_t step, float* padded) {
  const Tag d;
  float* const rows = head.whole ? to : padded;
  const std::size_t rows_step = head.whole ? step : head.padded_width;
  for (std::size_t t = 0; t < head.tokens; t += lane_count) {
    for (std::size_t c = 0; c < head.width; c += 4) {
      Vector v[4];
      for (std::size_t i = 0; i < 4; ++i) v[i] = hn::LoadU(d, lanes + t * head.padded_width + (c + i) * lane_count);
      store_four(v, rows + t * rows_step + c, rows_step);
    }
  }
  if (!head.whole) write_rows(head, padded, head.tokens, to, step);
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

/// Scores are kept in base 2: the queries in lanes carry log₂e/√head_width.
HWY_INLINE float query_factor(const AttentionShape& shape) {
  return std::numbers::log2e_v<float> / std::sqrt(static_cast<float>(shape.head_width()));
}

/// scores [end, lanes] of the block of queries that begins at `first`.
HWY_INLINE void block_scores(const Head& head, std::size_t first, std::size_t end, const float* rows,
                             const float* lanes, float* scores) {
  const auto product = [&](const auto& scalars) HWY_ATTR {
    small_product(Tag(), scalars, lanes + first * head.padded_width, lane_count, head.width, end, from_zero,
                  [&](std::size_t j, Vector sum) HWY_ATTR { hn::Store(sum, Tag(), scores + j * lane_count); });
  };
  switch (head.padded_width) {
    case 8: return product(Scalars<8>{rows, 1});
    case 16: return product(Scalars<16>{rows, 1});
    case 32: return product(Scalars<32>{rows, 1});
    case 64: return product(Scalars<64>{rows, 1});
    default: return product(Scalars<0>{rows, 1, head.padded_width});
  }
}

void softmax_block(const Head& head, std::size_t first, const Seen& seen, float* shift, float* inverse) {
  const Tag d;
  // Four maxima side by side: one would wait for itself at every key.
  const Vector lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  Vector largest_of[4] = {lowest, lowest, lowest, lowest};
  const auto score_of = [&](std::size_t j) HWY_ATTR { return hn::Load(d, head.scores + j * lane_count); };
  std::size_t key = 0;
  for (; key + 4 <= seen.everyone; key += 4)
    for (std::size_t i = 0; i < 4; ++i) largest_of[i] = hn::Max(largest_of[i], score_of(key + i));
  for (; key < seen.everyone; ++key) largest_of[0] = hn::Max(largest_of[0], score_of(key));
  const auto masked = [&](std::size_t j) HWY_ATTR { return hn::IfThenElse(blind(first, j), lowest, score_of(j)); };
  for (; key + 4 <= seen.end; key += 4)
    for (std::size_t i = 0; i < 4; ++i) largest_of[i] = hn::Max(largest_of[i], masked(key + i));
  for (; key < seen.end; ++key) largest_of[0] = hn::Max(largest_of[0], masked(key));
  const Vector largest = hn::Max(hn::Max(largest_of[0], largest_of[1]), hn::Max(largest_of[2], largest_of[3]));
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
      if (head.whole) {
        to_lanes(head, of_head, row, bias(biases.query), query_factor(shape), head.query_t);
      } else {
        read_rows(head, of_head, row, bias(biases.query), head.query);
        to_lanes(head, head.query, head.padded_width, nullptr, query_factor(shape), head.query_t);
      }
      read_rows(head, of_head + width, row, bias(biases.key), head.key);
      // The probabilities of a query add up to 1: the values' bias may wait for the end, and they need no copy.
      const float* const value_bias = bias(biases.value);
      float* const shift = statistics_of(shape, statistics, s, h);
      float* const inverse = shift + head.padded_tokens;
      for (std::size_t first = 0; first < shape.tokens; first += lane_count) {
        const Seen seen = keys_seen(shape, first, keys);
        block_scores(head, first, seen.end, head.key, head.query_t, head.scores);
        softmax_block(head, first, seen, shift, inverse);
        float* const out_t = head.out_t + first * head.padded_width;
        const Vector factor = hn::LoadU(d, inverse + first);
        small_product(d, Scalars<1>{of_head + 2 * width, row}, head.scores, lane_count, seen.end, head.width, from_zero,
                      [&](std::size_t c, Vector sum) HWY_ATTR {
                        const Vector b = hn::Set(d, value_bias != nullptr ? value_bias[c] : 0.0f);
                        hn::StoreU(hn::MulAdd(sum, factor, b), d, out_t + c * lane_count);
                      });
      }
      write_lanes(head, head.out_t, out + s * shape.tokens * width + column, width, head.query);
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

/// to[j] += Σ_i scalars[j][i]·rows[first + i]: what the block's queries add to the rows of keys or values. The first
/// block that sees a key writes its row.
template <class D, std::size_t fixed>
void add_columns(D d, const AttentionShape& shape, const Head& head, const float* scalars, const float* rows,
                 std::size_t first, std::size_t end, float* to) {
  const std::size_t step = fixed != 0 ? fixed : head.padded_width;
  const std::size_t seen_before = shape.causal || first == 0 ? std::min(first, end) : end;
  // No query sees a key behind it: keys that are new in a causal block go in groups, the later ones with fewer terms.
  const std::size_t group = shape.causal ? 4 : end;
  for (std::size_t c = 0; c < head.width; c += hn::MaxLanes(d)) {
    const float* const from = rows + first * step + c;
    const auto row = [&](std::size_t j) { return to + j * step + c; };
    const auto store = [&](std::size_t j, hn::Vec<D> sum) HWY_ATTR { hn::StoreU(sum, d, row(j)); };
    small_product(
        d, Scalars<lane_count>{scalars, 1}, from, step, lane_count, seen_before,
        [&](std::size_t j) HWY_ATTR { return hn::LoadU(d, row(j)); }, store);
    const auto zero = [&](std::size_t) HWY_ATTR { return hn::Zero(d); };
    for (std::size_t key = seen_before; key < end; key += group) {
      const std::size_t blind = shape.causal ? key - first : 0;
      small_product(d, Scalars<lane_count>{scalars + key * lane_count + blind, 1}, from + blind * step, step,
                    lane_count - blind, std::min(group, end - key), zero,
                    [&](std::size_t u, hn::Vec<D> sum) HWY_ATTR { store(key + u, sum); });
    }
  }
}

HWY_INLINE void add_to_rows(const AttentionShape& shape, const Head& head, const float* scalars, const float* rows,
                            std::size_t first, std::size_t end, float* to) {
  switch (head.padded_width) {
    case 8: return add_columns<NarrowTag, 8>({}, shape, head, scalars, rows, first, end, to);
    case 16: return add_columns<Tag, 16>({}, shape, head, scalars, rows, first, end, to);
    default: return add_columns<Tag, 0>({}, shape, head, scalars, rows, first, end, to);
  }
}

void AttentionBackward(const AttentionShape& shape, const float* qkv, const AttentionBiases& biases,
                       const std::int64_t* visible, const float* out_gradient, const float* statistics,
                       float* qkv_gradient, float* scratch) {
  const Tag d;
  const std::size_t width = shape.width, row = 3 * width, of_sequence = shape.tokens * row;
  const float to_scores = 1 / std::sqrt(static_cast<float>(shape.head_width()));
  Head head(shape, scratch);
  const std::size_t blocks = shape.heads * (head.padded_tokens / lane_count);
  const std::size_t lines_of_block = of_sequence / (blocks * FetchAhead::line) + 1;
  for (std::size_t s = 0; s < shape.sequences; ++s) {
    const std::size_t keys = visible != nullptr ? static_cast<std::size_t>(visible[s]) : shape.tokens;
    // Heads read single lines of every row, which no processor foresees.
    FetchAhead following;
    if (s + 1 < shape.sequences) following.add(qkv + (s + 1) * of_sequence, of_sequence);
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const std::size_t column = h * head.width;
      const float* const of_head = qkv + s * shape.tokens * row + column;
      const auto bias = [&](const float* all) { return all != nullptr ? all + column : nullptr; };
      read_rows(head, of_head, row, bias(biases.query), head.query);
      to_lanes(head, head.query, head.padded_width, nullptr, query_factor(shape), head.query_t);
      read_rows(head, of_head + width, row, bias(biases.key), head.key);
      read_rows(head, of_head + 2 * width, row, bias(biases.value), head.value);
      read_rows(head, out_gradient + s * shape.tokens * width + column, width, nullptr, head.gradient);
      // dL/dq and dL/dk both take 1/√head_width: dL/dscore has it from here.
      to_lanes(head, head.gradient, head.padded_width, nullptr, to_scores, head.gradient_t);
      const float* const shift = statistics + (s * shape.heads + h) * 2 * head.padded_tokens;
      const float* const inverse = shift + head.padded_tokens;
      for (std::size_t first = 0; first < shape.tokens; first += lane_count) {
        following.fetch(lines_of_block);
        const Seen seen = keys_seen(shape, first, keys);
        block_scores(head, first, seen.end, head.key, head.query_t, head.scores);
        block_scores(head, first, seen.end, head.value, head.gradient_t, head.score_gradients);
        softmax_gradient_block(head, first, seen, shift, inverse);
        add_to_rows(shape, head, head.scores, head.gradient, first, seen.end, head.value_gradient);
        add_to_rows(shape, head, head.score_gradients, head.query, first, seen.end, head.key_gradient);
        float* const gradient_t = head.query_gradient_t + first * head.padded_width;
        small_product(d, Scalars<1>{head.key, head.padded_width}, head.score_gradients, lane_count, seen.end,
                      head.width, from_zero,
                      [&](std::size_t c, Vector sum) HWY_ATTR { hn::StoreU(sum, d, gradient_t + c * lane_count); });
      }
      float* const gradient = qkv_gradient + s * shape.tokens * row + column;
      write_lanes(head, head.query_gradient_t, gradient, row, head.gradient);
      write_rows(head, head.key_gradient, keys, gradient + width, row);
      write_rows(head, head.value_gradient, keys, gradient + 2 * width, row);
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
  return padded_tokens() * (matrices * padded_head_width() + blocks * most_lanes);
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
