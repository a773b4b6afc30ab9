// What the kernels promise beyond what a stack asks of them: accuracy over the whole range of their arguments, and that
// what is not finite stays so. At every SIMD level.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/gelu_expansions.h"
#include "kernels/norm.h"
#include "kernels/product.h"
#include "kernels/reductions.h"
#include "kernels/simd_level.h"

namespace gradflow {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class Kernels : public ::testing::TestWithParam<std::string> {
 protected:
  Kernels() { force_simd_level(GetParam()); }
  ~Kernels() override { force_simd_level(""); }
};

double gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double gelu_derivative(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}

TEST_P(Kernels, GeluIsAccurateEverywhere) {
  std::vector<float> x;
  for (float v = -12; v < 12; v += 0.0007f) x.push_back(v);
  // Where the last expansion begins, where the fit of the quotient ends.
  for (const float edge : {30.5f / gelu_centres_per_unit, 5.5f})
    for (const float v : {std::nextafter(edge, 0.0f), edge, std::nextafter(edge, 9.0f)}) x.insert(x.end(), {v, -v});
  std::vector<float> y(x.size()), again(x.size()), gradient(x.size(), 1);
  activation_forward(Activation::gelu, 1, x.size(), x.data(), nullptr, y.data(), x.size());
  activation_backward(Activation::gelu, 1, x.size(), x.data(), nullptr, again.data(), gradient.data(), x.size(),
                      nullptr);
  const bool by_expansions = GetParam() == "AVX-512";
  const double allowed = by_expansions ? 1e-7 : 3e-7, allowed_of_derivative = by_expansions ? 1.5e-7 : 6e-7;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = std::max(1.0, std::abs(static_cast<double>(x[i])));
    EXPECT_NEAR(y[i], gelu(x[i]), allowed * size) << x[i];
    EXPECT_NEAR(again[i], gelu(x[i]), allowed * size) << x[i];
    EXPECT_NEAR(gradient[i], gelu_derivative(x[i]), allowed_of_derivative) << x[i];
  }
}

TEST(GeluExpansions, FollowTheNormalDistribution) {
  const GeluExpansions& c = gelu_expansions();
  for (std::size_t centre = 0; centre < gelu_centres; ++centre)
    for (const double r : {-0.5, -0.3, 0.0, 0.2, 0.5}) {
      double sum = 0, slope = 0;
      for (std::size_t k = gelu_terms; k-- > 0;) {
        slope = slope * r + sum;
        sum = sum * r + static_cast<double>(c[k][centre]);
      }
      const double steps = static_cast<double>(gelu_centres_per_unit), x = (static_cast<double>(centre) + r) / steps;
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
      EXPECT_NEAR(sum, 0.5 * std::erf(x / std::sqrt(2.0)), 1.6e-8) << x;
      EXPECT_NEAR(slope * steps, density, 4e-8) << x;
    }
}

TEST_P(Kernels, GeluIsExactFarFromZero) {
  // Enough for whole vectors and a part of one.
  std::vector<float> x;
  for (const float size : {6.0f, 100.0f, 1e30f, 3e38f, infinity})
    for (int copy = 0; copy < 7; ++copy) x.insert(x.end(), {size, -size});
  std::vector<float> y(x.size()), again(x.size()), slope(x.size(), 1);
  activation_forward(Activation::gelu, 1, x.size(), x.data(), nullptr, y.data(), x.size());
  activation_backward(Activation::gelu, 1, x.size(), x.data(), nullptr, again.data(), slope.data(), x.size(), nullptr);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(slope[i], x[i] > 0 ? 1 : 0) << x[i];
    if (x[i] == -infinity) continue;  // -inf·0
    EXPECT_EQ(y[i], x[i] > 0 ? x[i] : 0) << x[i];
    EXPECT_EQ(again[i], y[i]) << x[i];
  }
}

/// y has the same bits whatever is shown of the terms, and the squares are those of the term that is shown.
TEST_P(Kernels, ShowingTheTermsOfASumChangesNoBitOfIt) {
  for (const std::size_t width : {1u, 13u, 16u, 40u}) {
    const std::size_t rows = 5, count = rows * width;
    std::vector<float> x(count), f(count), bias(width);
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = std::sin(static_cast<float>(i));
      f[i] = std::cos(3 * static_cast<float>(i));
    }
    for (std::size_t i = 0; i < width; ++i) bias[i] = 0.1f * static_cast<float>(i);
    const SumShape shape{.rows = rows, .width = width, .skip_factor = 1.7f, .branch_factor = 0.3f};
    std::vector<float> plain(count), tensors(count), squares(count), skip(count), branch(count);
    double branch_squares = 1;
    residual_sum(shape, x.data(), f.data(), bias.data(), plain.data(), {});
    residual_sum(shape, x.data(), f.data(), bias.data(), tensors.data(),
                 {.skip = skip.data(), .branch = branch.data()});
    residual_sum(shape, x.data(), f.data(), bias.data(), squares.data(), {.branch_squares = &branch_squares});
    EXPECT_EQ(tensors, plain);
    EXPECT_EQ(squares, plain);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(skip[i], 1.7f * x[i]);
    EXPECT_NEAR((branch_squares - 1) / sum_of_squares(branch.data(), count), 1, 1e-14) << width;
  }
}

TEST_P(Kernels, WhatIsNotFiniteShows) {
  for (const Activation activation : {Activation::gelu, Activation::relu}) {
    const float x[] = {nan, infinity, 1};
    float y[3];
    activation_forward(activation, 1, 3, x, nullptr, y, 3);
    float again[3], gradient[] = {1, 1, 1};
    activation_backward(activation, 1, 3, x, nullptr, again, gradient, 3, nullptr);
    EXPECT_TRUE(std::isnan(again[0]));
    if (activation == Activation::gelu) {
      EXPECT_TRUE(std::isnan(gradient[0]));
    }
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], infinity);
    EXPECT_TRUE(std::isfinite(y[2]));
  }
  const std::int64_t target[] = {0};
  for (const float bad : {nan, infinity}) {
    const float logits[] = {1, bad, 2};
    float kept[2];
    EXPECT_FALSE(std::isfinite(cross_entropy_sum(1, 3, logits, target, kept)));
  }
  const AttentionShape shape{.sequences = 1, .tokens = 3, .width = 4, .heads = 2};
  std::vector<float> qkv(3 * 12, 0.5f), out(12), statistics(shape.statistics_size());
  qkv[13] = nan;  // the second token's query, of the first head
  struct alignas(64) Line {
    float floats[16];
  };
  std::vector<Line> scratch(shape.scratch_size() / 16 + 1);
  attention_forward(shape, qkv.data(), {}, nullptr, out.data(), statistics.data(), scratch.front().floats);
  EXPECT_TRUE(std::isfinite(out[0]));
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_TRUE(std::isfinite(out[6]));
}

TEST_P(Kernels, CrossEntropyOfLargeLogitsKeepsItsDigits) {
  std::vector<float> logits(21), gradient(21);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = 5000 + 0.25f * static_cast<float>(i);
  const std::int64_t target[] = {3};
  float kept[2];
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z) - 5000);
  const double loss = cross_entropy_sum(1, logits.size(), logits.data(), target, kept);
  EXPECT_NEAR(loss, std::log(sum) - 0.75, 2e-6);
  cross_entropy_backward(1, logits.size(), logits.data(), target, kept, 1, gradient.data());
  for (std::size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(gradient[i], std::exp(static_cast<double>(logits[i]) - 5000) / sum - (i == 3 ? 1 : 0), 3e-7);
}

TEST_P(Kernels, RowsWithoutATargetCostNothing) {
  const float logits[] = {1, 2, 3, 4};
  const std::int64_t targets[] = {-100, 1};
  float kept[4], gradient[4] = {7, 7, 7, 7};
  EXPECT_NEAR(cross_entropy_sum(2, 2, logits, targets, kept), std::log1p(std::exp(-1.0)), 1e-6);
  cross_entropy_backward(2, 2, logits, targets, kept, 1, gradient);
  EXPECT_EQ(gradient[0], 0);
  EXPECT_EQ(gradient[1], 0);
  EXPECT_LT(gradient[3], 0);
}

TEST_P(Kernels, NormOfALargeMeanKeepsTheDeviations) {
  std::vector<float> x(37), y(37), gain(37, 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4096 + static_cast<float>(i % 2);
  float statistics[2];
  norm_forward({.rows = 1, .width = 37, .epsilon = 0}, x.data(), gain.data(), nullptr, y.data(), statistics);
  const double mean = 18.0 / 37, deviation = std::sqrt(mean * (1 - mean));
  EXPECT_NEAR(y[0], -mean / deviation, 2e-3);  // the mean itself has an ulp of 5e-4
  EXPECT_NEAR(y[1], (1 - mean) / deviation, 2e-3);
}

/// What explodes has large deviations and large gradients at once; dx and the gain's gradient are ordinary numbers.
TEST_P(Kernels, NormBackwardOfLargeNumbersStaysFinite) {
  const std::size_t rows = 5, width = 20;
  for (const bool centred : {true, false}) {
    const NormShape shape{.rows = rows, .width = width, .centred = centred};
    std::vector<float> x(rows * width), dy(x.size()), gain(width, 1), y(x.size()), dx(x.size());
    std::vector<float> gain_gradient(width), bias_gradient(width), statistics(2 * rows);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 1e10f * std::sin(static_cast<float>(i));
      dy[i] = 1e30f * std::cos(0.7f * static_cast<float>(i));
    }
    norm_forward(shape, x.data(), gain.data(), nullptr, y.data(), statistics.data());
    norm_backward(shape, dy.data(), x.data(), statistics.data(), gain.data(), 0, dx.data(), gain_gradient.data(),
                  bias_gradient.data());
    for (std::size_t row = 0; row < rows; ++row) {
      const auto normed = [&](std::size_t i) {
        return (static_cast<double>(x[row * width + i]) - statistics[2 * row]) * statistics[2 * row + 1];
      };
      double mean_e = 0, mean_dot = 0;
      for (std::size_t i = 0; i < width; ++i) {
        mean_e += centred ? static_cast<double>(dy[row * width + i]) / width : 0;
        mean_dot += static_cast<double>(dy[row * width + i]) * normed(i) / width;
      }
      for (std::size_t i = 0; i < width; ++i)
        EXPECT_NEAR(dx[row * width + i],
                    statistics[2 * row + 1] * (dy[row * width + i] - mean_e - normed(i) * mean_dot),
                    1e-5 * statistics[2 * row + 1] * 1e30)
            << "centred " << centred;
    }
    for (const float g : gain_gradient) EXPECT_TRUE(std::isfinite(g));
  }
}

/// Rows are taken four at a time: each must have the bits that it has alone, in both directions.
TEST_P(Kernels, ARowOfANormHasTheSameBitsAmongOthers) {
  const std::size_t rows = 23, width = 37;
  for (const bool centred : {true, false}) {
    const NormShape shape{.rows = rows, .width = width, .centred = centred, .scale = 0.7f};
    NormShape one = shape;
    one.rows = 1;
    std::vector<float> x(rows * width), dy(x.size()), gain(width), bias(width);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::sin(static_cast<float>(i)) + 0.3f;
      dy[i] = std::cos(0.7f * static_cast<float>(i));
    }
    for (std::size_t i = 0; i < width; ++i) {
      gain[i] = 1 + 0.01f * static_cast<float>(i);
      bias[i] = 0.1f * static_cast<float>(i);
    }
    struct Results {
      std::vector<float> y, again, dx, statistics, gain_gradient, bias_gradient;
      bool operator==(const Results&) const = default;
    };
    const auto results_of = [&](const NormShape& s, std::size_t calls) {
      Results r{std::vector<float>(x.size()), std::vector<float>(x.size()), dy,
                std::vector<float>(2 * rows), std::vector<float>(width),    std::vector<float>(width)};
      for (std::size_t call = 0; call < calls; ++call) {
        const std::size_t at = call * width;
        norm_forward(s, x.data() + at, gain.data(), bias.data(), r.y.data() + at, r.statistics.data() + 2 * call);
        norm_again(s, x.data() + at, r.statistics.data() + 2 * call, gain.data(), bias.data(), r.again.data() + at);
        norm_backward(s, r.dx.data() + at, x.data() + at, r.statistics.data() + 2 * call, gain.data(), 0.5f,
                      r.dx.data() + at, r.gain_gradient.data(), r.bias_gradient.data());
      }
      return r;
    };
    const Results together = results_of(shape, 1);
    EXPECT_EQ(together.y, together.again);
    EXPECT_TRUE(together == results_of(one, rows)) << "centred " << centred;
  }
}

TEST_P(Kernels, NothingIsWrittenBehindARow) {
  // Five elements fill no vector; what follows them must stay.
  const std::vector<float> x(6, 1);
  std::vector<float> y(6, -7), gain(5, 1);
  float statistics[2];
  norm_forward({.rows = 1, .width = 5, .epsilon = 1}, x.data(), gain.data(), nullptr, y.data(), statistics);
  EXPECT_EQ(y[5], -7);
  activation_forward(Activation::relu, 1, 5, x.data(), nullptr, y.data(), 5);
  EXPECT_EQ(y[5], -7);
  scaled_add(5, 1, 2, x.data(), y.data());
  EXPECT_EQ(y[5], -7);
  add_column_sums(1, 5, x.data(), 5, y.data());
  EXPECT_EQ(y[5], -7);
}

/// a·b in double of what `product` is given, into a matrix that holds `before`.
struct ProductCase {
  ProductCase(ProductShape s, bool in_panels) : shape(s), c(s.rows * s.c_step, before) {
    std::mt19937 generator(3);
    std::uniform_real_distribution<float> some(-1, 1);
    const auto filled = [&](std::size_t count) {
      std::vector<float> values(count);
      for (float& v : values) v = some(generator);
      return values;
    };
    a = filled((s.a_transposed ? s.terms : s.rows) * s.a_step);
    plain = filled(s.terms * s.columns);
    b = plain;
    shape.b_step = s.columns;
    shape.b_panel = panel_width;
    if (!in_panels) return;
    b.assign(packed_size(s.terms, s.columns), nan);  // what fills up the last panel is not read
    pack(s.terms, s.columns, plain.data(), b.data());
    shape.b_step = panel_width;
    shape.b_panel = s.terms * panel_width;
  }

  /// Of float32 sums in any order the error is at most that many roundings of all that is added (Higham 2002, 3.1).
  void expect_element(std::size_t i, std::size_t j) const {
    double sum = shape.add ? before : 0, sizes = sum;
    for (std::size_t k = 0; k < shape.terms; ++k) {
      const double term = static_cast<double>(a[shape.a_transposed ? k * shape.a_step + i : i * shape.a_step + k]) *
                          static_cast<double>(plain[k * shape.columns + j]);
      sum += term;
      sizes += std::abs(term);
    }
    ASSERT_NEAR(c[i * shape.c_step + j], sum, static_cast<double>(shape.terms + 1) * 0x1p-24 * sizes)
        << shape.rows << " x " << shape.columns << ", " << shape.terms << " terms, at " << i << ", " << j;
  }

  static constexpr float before = 7;
  ProductShape shape;
  std::vector<float> a, plain, b, c;
};

TEST_P(Kernels, ProductsOfAllShapes) {
  FetchAhead ahead;
  for (const std::size_t rows : {1u, 4u, 6u, 11u, 29u})
    for (const std::size_t columns : {16u, 32u, 48u, 64u, 96u, 144u})
      for (const std::size_t terms : {1u, 16u, 130u, 300u})
        for (const bool transposed : {false, true})
          for (const int choices : {0, 1, 2, 3}) {
            const bool more = choices % 2 != 0, in_panels = choices / 2 != 0;
            ProductCase given({.rows = rows,
                               .columns = columns,
                               .terms = terms,
                               .a_step = (transposed ? rows : terms) + 3,
                               .a_transposed = transposed,
                               .c_step = columns + 2,
                               .add = more},
                              in_panels);
            ahead.add(given.a.data(), given.a.size());
            product(given.shape, given.a.data(), given.b.data(), given.c.data(), ahead);
            for (std::size_t i = 0; i < rows; ++i) {
              for (std::size_t j = 0; j < columns; ++j) given.expect_element(i, j);
              for (std::size_t j = columns; j < columns + 2; ++j)
                ASSERT_EQ(given.c[i * (columns + 2) + j], ProductCase::before);
            }
          }
}

/// A sequence's numbers must not depend on how many others are in its chunk.
TEST_P(Kernels, ARowOfAProductHasTheSameBitsAmongOthers) {
  FetchAhead ahead;
  const std::size_t rows = 23, columns = 80, terms = 200;
  for (const bool transposed : {false, true}) {
    const std::size_t a_step = transposed ? rows : terms;
    ProductCase given({.rows = rows,
                       .columns = columns,
                       .terms = terms,
                       .a_step = a_step,
                       .a_transposed = transposed,
                       .c_step = columns},
                      /*in_panels=*/true);
    product(given.shape, given.a.data(), given.b.data(), given.c.data(), ahead);
    ProductShape one = given.shape;
    one.rows = 1;
    for (std::size_t i = 0; i < rows; ++i) {
      std::vector<float> alone(columns);
      product(one, given.a.data() + i * (transposed ? 1 : a_step), given.b.data(), alone.data(), ahead);
      for (std::size_t j = 0; j < columns; ++j) ASSERT_EQ(alone[j], given.c[i * columns + j]) << i << ", " << j;
    }
  }
}

TEST_P(Kernels, PackingTransposes) {
  const std::size_t rows = 80, columns = 36;
  std::vector<float> from(rows * columns), to(packed_size(columns, rows), nan);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  pack_transposed(rows, columns, from.data(), to.data());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      ASSERT_EQ(to[r / panel_width * columns * panel_width + c * panel_width + r % panel_width], from[r * columns + c]);
}

TEST(FetchingAhead, GivesRegionsLineByLineInTheOrderOfNeed) {
  std::vector<float> first(40), second(16);
  FetchAhead ahead;
  ahead.add(first.data(), first.size());
  ahead.add(second.data(), second.size());
  const auto expect = [&](std::size_t most, const float* from, std::size_t count) {
    const FetchAhead::Lines lines = ahead.take(most);
    EXPECT_EQ(lines.first, from);
    EXPECT_EQ(lines.count, count);
  };
  expect(2, first.data(), 2);
  expect(5, first.data() + 32, 1);
  expect(5, second.data(), 1);
  expect(5, nullptr, 0);
  ahead.add(first.data(), first.size());
  ahead.add(second.data(), second.size());
  ahead.fetch(3);  // all of the first
  expect(5, second.data(), 1);
  // What does not fit in any more is left out, not written over.
  ahead.restart();
  ahead.add(second.data(), second.size());
  for (int i = 0; i < 100; ++i) ahead.add(first.data(), first.size());
  expect(1, second.data(), 1);
  ahead.restart();
  expect(1, nullptr, 0);
  ahead.add(second.data(), second.size());
  expect(1, second.data(), 1);
}

INSTANTIATE_TEST_SUITE_P(Levels, Kernels, ::testing::ValuesIn(simd_levels()), [](const auto& test) {
  std::string name = test.param;
  std::erase(name, '-');
  return name;
});

TEST(SimdLevels, HoldTheScalarOneAndTakeTheBest) {
  EXPECT_EQ(simd_levels().back(), "scalar");
  EXPECT_EQ(simd_level(), simd_levels().front());
  force_simd_level("scalar");
  EXPECT_EQ(simd_level(), "scalar");
  EXPECT_EQ(simd_levels().front() == "scalar", simd_levels().size() == 1);
  force_simd_level("");
  EXPECT_EQ(simd_level(), simd_levels().front());
  EXPECT_THROW(force_simd_level("MMX"), std::logic_error);
}

}  // namespace
}  // namespace gradflow
