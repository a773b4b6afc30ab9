#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "model/layout.h"

namespace gradflow {

// What will be built, from the configuration alone: for `describe` and for the derived part of config.json.

/// The standard deviation of the elements of one parameter at the start: 0 for a constant, that of the entries of an
/// orthonormal matrix, the root mean square about the offset of a sinusoid.
double initial_std(const ParameterSpec& parameter);

/// The parameters that differ in the number of their block alone.
struct ParameterGroup {
  std::string name;  ///< canonical, without the block: "attention.q.weight"
  std::vector<std::int64_t> shape;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;  ///< of all tensors
  Distribution distribution = Distribution::constant;
  double offset = 0;
  double least_std = 0, greatest_std = 0;  ///< initial_std; they differ where it depends on the block
  bool decays = false;
};

/// In the order of the forward pass. Names that come in several shapes (a resnet's stages) have a group for each.
std::vector<ParameterGroup> parameter_groups(const Layout& layout);

/// How a group starts, in a few words: "std 0.125", "uniform, std 0.0208-0.0722", "1".
std::string start_in_words(const ParameterGroup& group);

/// What weight decay acts on and what it leaves alone; every parameter is in exactly one of the two.
struct DecayGroup {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
};
struct DecayGroups {
  DecayGroup decayed;
  DecayGroup not_decayed;
};
DecayGroups decay_groups(const Layout& layout);

/// One hash for each of data.files, of its content: 16 hexadecimal digits of FNV-1a, joined by "+"; empty without
/// files. Throws Error for a file that cannot be read.
std::string data_files_hash(const Config& config);

/// The block `derived` of config.json: parameter counts, the constants that apply (α, β, ω, factors), final norm, the
/// initial std of every group, the formulas; with `files_hash` also the content of data.files.
nlohmann::ordered_json derived_json(const Config& config, const Layout& layout, std::string_view files_hash = {});

}  // namespace gradflow
