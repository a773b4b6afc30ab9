#include "model/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "config/resolved.h"

namespace gradflow {
namespace {

/// Standard deviations of block 3 of a stack of N = 8 blocks, d = 16, ffn = 64, V = 32, worked out from the papers by
/// hand: not from the code under test.
struct Row {
  Initialization scheme;
  Placement placement;
  double query, value, out, ffn_in, ffn_out, head;
};

const double xavier_square = std::sqrt(2.0 / 32), xavier_ffn = std::sqrt(2.0 / 80), xavier_head = std::sqrt(2.0 / 48);
const double he = std::sqrt(2.0 / 16), he_ffn_out = std::sqrt(2.0 / 64);

const Row rows[] = {
    {Initialization::xavier_normal, Placement::pre, xavier_square, xavier_square, xavier_square, xavier_ffn, xavier_ffn,
     xavier_head},
    {Initialization::xavier_uniform, Placement::pre, xavier_square, xavier_square, xavier_square, xavier_ffn,
     xavier_ffn, xavier_head},
    // β = (8·8)^-¼ = 64^-¼ = 0.353553…, not on q and k.
    {Initialization::xavier_normal, Placement::deepnorm, xavier_square, 0.35355339059327 * xavier_square,
     0.35355339059327 * xavier_square, 0.35355339059327 * xavier_ffn, 0.35355339059327 * xavier_ffn, xavier_head},
    {Initialization::normal, Placement::deepnorm, 0.02, 0.0070710678118655, 0.0070710678118655, 0.0070710678118655,
     0.0070710678118655, 0.02},
    // √ln(2·8) = 1.665109…
    {Initialization::normal, Placement::sub_ln, 0.02, 0.03330218444630, 0.03330218444630, 0.03330218444630,
     0.03330218444630, 0.02},
    {Initialization::he_normal, Placement::pre, he, he, he, he, he_ffn_out, he},
    {Initialization::normal, Placement::pre, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02},
    // 0.02/√16
    {Initialization::gpt2, Placement::pre, 0.02, 0.02, 0.005, 0.02, 0.005, 0.02},
    // bound √(6/(in + out))/√3
    {Initialization::ds_init, Placement::pre, xavier_square / std::sqrt(3.0), xavier_square / std::sqrt(3.0),
     xavier_square / std::sqrt(3.0), xavier_ffn / std::sqrt(3.0), xavier_ffn / std::sqrt(3.0), xavier_head},
    // 16 sub-layers: he·16^-½; the last of a branch and the head are 0
    {Initialization::fixup, Placement::none, he / 4, he / 4, 0, he / 4, 0, 0},
    // 0.67·8^-¼ = 0.398384…
    {Initialization::t_fixup, Placement::none, xavier_square, 0.39838438 * xavier_square, 0.39838438 * xavier_square,
     0.39838438 * xavier_ffn, 0.39838438 * xavier_ffn, xavier_head},
    // 1/√(2·16·3), 1/√(2·64·3), 1/√in
    {Initialization::mitchell, Placement::pre, 0.25, 0.25, 0.10206207261597, 0.25, 0.05103103630798, 0.25},
};

TEST(Layout, EverySchemeGivesEachMatrixItsOwnStd) {
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(name_of(row.scheme)) + ", " + std::string(name_of(row.placement)));
    Config config;
    config.model.depth = 8;
    config.model.width = 16;
    config.model.placement = row.placement;
    config.model.initialization = row.scheme;
    config.data.vocabulary = 32;
    std::map<std::string, Fill> fills;
    for (const SegmentSpec& segment : make_layout(resolved(config)).segments)
      for (const ParameterSpec& parameter : segment.parameters) fills[parameter.name] = parameter.fill;
    const auto expect = [&](const char* name, double std) { EXPECT_NEAR(fills.at(name).std, std, 1e-8) << name; };
    expect("block.3.attention.q.weight", row.query);
    expect("block.3.attention.k.weight", row.query);
    expect("block.3.attention.v.weight", row.value);
    expect("block.3.attention.out.weight", row.out);
    expect("block.3.ffn.in.weight", row.ffn_in);
    expect("block.3.ffn.out.weight", row.ffn_out);
    expect("head.weight", row.head);
    const bool uniform = row.scheme == Initialization::xavier_uniform || row.scheme == Initialization::ds_init;
    EXPECT_EQ(fills.at("head.weight").distribution, uniform ? Distribution::uniform : Distribution::normal);
    EXPECT_EQ(fills.at("block.3.ffn.in.bias").offset, 0);
  }
}

TEST(Layout, TheFactorsOfTheConfigurationMultiplyWhatTheSchemeGives) {
  Config config;
  config.model.branch_init_scale = 0.01;
  config.model.query_key_init_scale = 0;
  config = resolved(config);
  for (const SegmentSpec& segment : make_layout(config).segments)
    for (const ParameterSpec& parameter : segment.parameters) {
      const auto expect = [&](const char* name, double std) {
        if (parameter.name == name) {
          EXPECT_NEAR(parameter.fill.std, std, 1e-12);
        }
      };
      expect("block.1.attention.out.weight", 0.01 * 0.125);
      expect("block.1.attention.q.weight", 0);
      expect("block.1.attention.v.weight", 0.125);
    }
}

}  // namespace
}  // namespace gradflow
