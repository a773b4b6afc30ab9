#include "kernels/optimizer_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/reductions.h"
#include "kernels/simd_level.h"

namespace gradflow {
namespace {

/// One tensor of `count` weights with its moments, none of them round.
struct Tensor {
  explicit Tensor(std::size_t count) : w(count), gradient(count), m(count), v(count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(i);
      w[i] = std::sin(x);
      gradient[i] = std::cos(3 * x);
      m[i] = 0.1f * std::sin(2 * x);
      v[i] = 0.01f + 0.001f * std::cos(x);
    }
  }
  std::vector<float> w, gradient, m, v;
};

const UpdateConstants constants{.clip = 0.7f,
                                .l2 = 0.01f,
                                .kept = 0.999f,
                                .rate = 1e-3f,
                                .beta1 = 0.9f,
                                .beta2 = 0.98f,
                                .epsilon = 1e-8f,
                                .one_less_beta1 = 0.1f,
                                .one_less_beta2 = 0.02f,
                                .correction1 = 3,
                                .correction2 = 20,
                                .momentum = 0.5f};

TEST(OptimizerUpdate, FollowsItsFormulas) {
  for (const std::size_t count : {1u, 7u, 16u, 37u}) {
    Tensor tensor(count);
    const Tensor before(count);
    adam_update(constants, count, tensor.gradient.data(), tensor.w.data(), tensor.m.data(), tensor.v.data());
    for (std::size_t i = 0; i < count; ++i) {
      const double g = 0.7 * before.gradient[i] + 0.01 * before.w[i];
      const double m = 0.9 * before.m[i] + 0.1 * g, v = 0.98 * before.v[i] + 0.02 * g * g;
      EXPECT_NEAR(tensor.m[i], m, 1e-6);
      EXPECT_NEAR(tensor.v[i], v, 1e-6);
      EXPECT_NEAR(tensor.w[i], 0.999 * before.w[i] - 1e-3 * 3 * m / (std::sqrt(20 * v) + 1e-8), 1e-6);
    }
  }
}

enum class Rule { adam, sgd, plain_sgd };

UpdateSquares apply(Rule rule, Tensor& tensor) {
  const std::size_t count = tensor.w.size();
  float* const m = rule == Rule::plain_sgd ? nullptr : tensor.m.data();
  return rule == Rule::adam ? adam_update(constants, count, tensor.gradient.data(), tensor.w.data(), m, tensor.v.data())
                            : sgd_update(constants, count, tensor.gradient.data(), tensor.w.data(), m);
}

TEST(OptimizerUpdate, WithoutMomentumTheGradientIsTheStep) {
  for (const std::size_t count : {1u, 7u, 16u, 37u}) {
    Tensor plain(count), with_moment(count);
    apply(Rule::plain_sgd, plain);
    UpdateConstants none = constants;
    none.momentum = 0;
    sgd_update(none, count, with_moment.gradient.data(), with_moment.w.data(), with_moment.m.data());
    EXPECT_EQ(plain.w, with_moment.w);
    for (std::size_t i = 0; i < count; ++i) {
      const Tensor before(count);
      EXPECT_NEAR(plain.w[i], 0.999 * before.w[i] - 1e-3 * (0.7 * before.gradient[i] + 0.01 * before.w[i]), 1e-6);
    }
  }
}

TEST(OptimizerUpdate, GivesTheSameBitsAtEveryLevelAndSumsAsEverywhere) {
  for (const Rule rule : {Rule::adam, Rule::sgd, Rule::plain_sgd})
    for (const std::size_t count : {1u, 5u, 16u, 29u, 1000u}) {
      const Tensor before(count);
      std::vector<float> w;
      UpdateSquares of_first;
      for (const std::string& level : simd_levels()) {
        force_simd_level(level);
        Tensor tensor(count);
        const UpdateSquares squares = apply(rule, tensor);
        EXPECT_EQ(squares.before, sum_of_squares(before.w.data(), count)) << level;
        EXPECT_EQ(squares.after, sum_of_squares(tensor.w.data(), count)) << level;
        if (w.empty()) {
          w = tensor.w;
          of_first = squares;
        }
        EXPECT_EQ(tensor.w, w) << level;
        EXPECT_EQ(squares.change, of_first.change) << level;
      }
      force_simd_level("");
    }
}

}  // namespace
}  // namespace gradflow
