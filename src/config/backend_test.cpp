#include "config/backend.h"

#include <gmock/gmock.h>

#include "config/load.h"
#include "config/resolved.h"
#include "core/error.h"

namespace gradflow {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

/// What is said against a configuration of these keys.
std::vector<std::string> faults(std::vector<std::string> overrides) {
  try {
    parse_config("{}", "x.json", overrides);
  } catch (const Error& error) {
    return error.lines();
  }
  return {};
}

TEST(FusedBackend, RunsTheDefaults) {
  EXPECT_EQ(faults_in_words(fused_obstacles(resolved(Config{}))), "");
  EXPECT_EQ(faults({"compute.backend=fused"}), std::vector<std::string>{});
}

TEST(FusedBackend, IsRefusedWhereItCannotServeWithWhatWould) {
  struct Case {
    const char* override;
    const char* message;
  };
  for (const Case& c : {
           Case{"compute.dtype=float64", "compute.dtype is float64 (write float32); or write auto or aten here"},
           Case{"compute.device=cuda:1", "compute.device is cuda:1 (write cpu); or write auto or aten here"},
           Case{"compute.threads=2", "compute.threads is 2 (write 1); or write auto or aten here"},
           Case{"model.dropout=0.1", "model.dropout is 0.1 (write 0); or write auto or aten here"},
           Case{"model.qk_norm=true", "model.qk_norm is true (write false); or write auto or aten here"},
           Case{"model.activation=tanh",
                "model.activation is tanh (write one of gelu, relu); or write auto or aten here"},
           Case{"model.norm=dyt",
                "model.norm is dyt (write one of none, layernorm, rmsnorm); or write auto or aten here"},
           Case{"model.residual=highway",
                "model.residual is highway (write one of add, none, scaled, rezero, "
                "sqrt2); or write auto or aten here"},
           Case{"model.placement=b2t",
                "model.placement is b2t (write one of none, pre, post, deepnorm, sandwich, "
                "peri, reordered, lns, keel, mix_ln); or write auto or aten here"},
           Case{"record.quantities=zero_fraction",
                "record.quantities is zero_fraction (leave out what is measured inside sub-layers); or write "
                "auto or aten here"},
       }) {
    EXPECT_THAT(faults({"compute.backend=fused", c.override}),
                ElementsAre(EndsWith(std::string("compute.backend: fused cannot run this: ") + c.message)));
    EXPECT_EQ(faults({"compute.backend=auto", c.override}), std::vector<std::string>{});
  }
}

TEST(FusedBackend, NamesAllThatStandsInItsWayInOneError) {
  EXPECT_THAT(faults({"compute.backend=fused", "model.dropout=0.1", "model.qk_norm=true", "compute.threads=2"}),
              ElementsAre(EndsWith("compute.backend: fused cannot run this: compute.threads is 2 (write 1), "
                                   "model.qk_norm is true (write false), model.dropout is 0.1 (write 0); or write auto "
                                   "or aten here")));
}

TEST(FusedBackend, SaysNothingOfAKeyThatIsAtFaultItself) {
  EXPECT_THAT(faults({"compute.backend=fused", "model.dropout=0.1", "compute.threads=0"}),
              UnorderedElementsAre(StartsWith("--set compute.threads: 0 is out of range"),
                                   EndsWith("this: model.dropout is 0.1 (write 0); or write auto or aten here")));
}

TEST(FusedBackend, ServesTransformersOnly) {
  EXPECT_THAT(faults({"compute.backend=fused", "model.stack=mlp", "data.task=teacher"}),
              ElementsAre(EndsWith("model.stack is mlp (write transformer); or write auto or aten here")));
}

TEST(FusedBackend, CoversThePlacementsThatItPromises) {
  for (const Placement placement :
       {Placement::none, Placement::pre, Placement::post, Placement::deepnorm, Placement::sandwich, Placement::peri,
        Placement::reordered, Placement::lns, Placement::mix_ln, Placement::keel})
    for (const Norm norm : {Norm::none, Norm::layernorm, Norm::rmsnorm})
      for (const Residual residual :
           {Residual::add, Residual::none, Residual::scaled, Residual::rezero, Residual::sqrt2}) {
        Config config;
        config.model.placement = placement;
        config.model.norm = norm;
        config.model.residual = residual;
        EXPECT_EQ(faults_in_words(fused_obstacles(resolved(config))), "") << name_of(placement);
      }
}

}  // namespace
}  // namespace gradflow
