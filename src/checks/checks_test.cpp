#include "checks/checks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/json_reader.h"

namespace gradflow {
namespace {

double value(const std::string& text, std::int64_t seed = 1) {
  Faults faults;
  const JsonValue json = read_json(text, "c.json", faults);
  const OperatorCheck check = read_operator(json, "check", "c.json", faults);
  faults.raise();
  return run_check(check, seed);
}

TEST(Checks, ClosedForms) {
  EXPECT_DOUBLE_EQ(value(R"({"name": "power", "base": 0.5, "exponent": 3})"), 0.125);
  EXPECT_DOUBLE_EQ(value(R"({"name": "power", "base": 0.5, "exponent": 3, "relative_to": {"exponent": 1}})"), 0.25);
  EXPECT_NEAR(value(R"({"name": "deepnorm_constant", "constant": "alpha", "depth": 12})"), 2.213364, 1e-6);
  EXPECT_NEAR(value(R"({"name": "deepnorm_constant", "constant": "beta", "depth": 6})"), 0.379918, 1e-6);
  EXPECT_DOUBLE_EQ(value(R"({"name": "deepnorm_std", "matrix": "attention.k", "depth": 6})"), 1);
  EXPECT_NEAR(value(R"({"name": "deepnorm_std", "matrix": "ffn.out", "depth": 6})"), 0.379918, 1e-6);
}

std::string product(const std::string& matrix, double factor, const std::string& measure, int layers = 8) {
  return R"({"name": "matrix_product", "width": 32, "layers": )" + std::to_string(layers) + R"(, "matrix": ")" +
         matrix + R"(", "factor": )" + std::to_string(factor) + R"(, "measure": ")" + measure + "\"}";
}

TEST(Checks, ProductsOfMatrices) {
  EXPECT_NEAR(value(product("orthogonal", 0.5, "rms_gain")), std::pow(0.5, 8), 1e-12);
  EXPECT_NEAR(value(product("orthogonal", 0.5, "log10_gain")), 8 * std::log10(0.5), 1e-9);
  EXPECT_NEAR(value(product("orthogonal", 0.5, "share_of_bound")), 1, 1e-9) << "here the bound is met";
  EXPECT_NEAR(value(product("orthogonal", 0.5, "decades_below_bound")), 0, 1e-9);
  EXPECT_NEAR(value(product("spectral", 1, "spectral_norm")), 1, 1e-12);
  EXPECT_GT(value(product("gaussian", 1, "decades_below_bound")), 1);
  // E‖W‖_F²/width = 1 for one Gaussian matrix.
  EXPECT_NEAR(value(product("gaussian", 1, "rms_gain", 1)), 1, 0.1);
}

TEST(Checks, ResidualProducts) {
  const auto blocks = [](double factor, int layers, const std::string& measure) {
    return value(R"({"name": "residual_product", "exponent": 0, "width": 256, "layers": )" + std::to_string(layers) +
                 R"(, "factor": )" + std::to_string(factor) + R"(, "measure": ")" + measure + "\"}");
  };
  EXPECT_DOUBLE_EQ(blocks(0, 5, "gain"), 1);
  EXPECT_NEAR(blocks(0, 5, "cosine"), 1, 1e-12);
  EXPECT_NEAR(blocks(1, 20, "log10_gain"), 10 * std::log10(2.0), 0.6) << "each block doubles the square";
  EXPECT_EQ(value(R"({"name": "cancelled_branch", "layers": 3, "width": 8})"), 0);
}

TEST(Checks, DifferWithTheSeedAndWithNothingElse) {
  EXPECT_EQ(value(product("gaussian", 1, "rms_gain"), 3), value(product("gaussian", 1, "rms_gain"), 3));
  EXPECT_NE(value(product("gaussian", 1, "rms_gain"), 3), value(product("gaussian", 1, "rms_gain"), 4));
}

std::string norm(const std::string& name, const std::string& which, const std::string& more = "") {
  return R"({"name": ")" + name + R"(", "norm": ")" + which + "\"" + more + "}";
}

TEST(Checks, WhatNormsSee) {
  EXPECT_LT(value(norm("norm_shift", "layernorm", R"(, "shift": 2)")), 1e-12);
  EXPECT_GT(value(norm("norm_shift", "rmsnorm", R"(, "shift": 2)")), 0.5);
  EXPECT_LT(value(norm("norm_scale", "rmsnorm", R"(, "factor": 7)")), 1e-10);
  EXPECT_NEAR(value(norm("norm_scale", "center", R"(, "factor": 7)")), 6, 1e-12);
  EXPECT_EQ(value(norm("norm_batch_dependence", "layernorm")), 0);
  EXPECT_GT(value(norm("norm_batch_dependence", "batchnorm")), 0.1);
  EXPECT_EQ(value(norm("norm_future_leak", "rmsnorm")), 0);
  EXPECT_GT(value(norm("norm_future_leak", "batchnorm")), 1e-4);
  EXPECT_EQ(value(norm("norm_evaluation_batch", "batchnorm")), 0);
  EXPECT_LT(value(norm("norm_padding", "batchnorm", R"(, "share": 0.5, "padding": "masked")")), 1e-12);
  EXPECT_GT(value(norm("norm_padding", "batchnorm", R"(, "share": 0.5, "padding": "counted")")), 0.1);
  for (const char* which : {"layernorm", "rmsnorm", "batchnorm", "dyt", "center"})
    EXPECT_LT(value(norm("norm_gradient", which)), 1e-7) << which;
}

TEST(Checks, Statistics) {
  EXPECT_NEAR(value(R"({"name": "batch_variance", "batch": 16})"), 1, 0.1);
  EXPECT_LT(value(R"({"name": "batch_of_one"})"), 1e-12);
  EXPECT_LT(value(R"({"name": "rms_identity", "form": "mean_squared", "mean": 1})"), 1e-14);
  EXPECT_NEAR(value(R"({"name": "rms_identity", "form": "mean_of_squares", "mean": 1})"), 0.5, 1e-12);
  EXPECT_NEAR(value(R"({"name": "norm_distance", "mean": 1})"), 1, 1e-9);
  EXPECT_LT(value(R"({"name": "scaled_sum"})"), 1e-10);
  EXPECT_NEAR(value(R"({"name": "uniform_attention", "tokens": 16})"), 1, 0.1);
}

TEST(Checks, Stacks) {
  for (const char* placement : {"none", "pre", "post", "deepnorm"})
    EXPECT_LT(value(R"({"name": "sum_formula", "depth": 2, "placement": ")" + std::string(placement) + "\"}"), 1e-12)
        << placement;
  EXPECT_LT(value(R"({"name": "stack_gradient", "depth": 2, "placement": "deepnorm"})"), 1e-7);
  EXPECT_EQ(value(R"({"name": "mode_gap", "norm": "layernorm", "depth": 1, "steps": 3})"), 0);
  EXPECT_GT(value(R"({"name": "mode_gap", "norm": "batchnorm", "depth": 1, "steps": 3})"), 1e-4);
  const auto update = [](const std::string& rate) {
    return value(
        R"({"name": "model_update", "placement": "pre", "optimizer": "sgd", "steps": 1, "depth": 1, "learning_rate": )" +
        rate + "}");
  };
  EXPECT_EQ(update("0"), 0);
  EXPECT_NEAR(update("2e-4") / update("1e-4"), 2, 0.05) << "a small step is linear";
}

}  // namespace
}  // namespace gradflow
