#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/choices.h"

namespace gradflow {

// The configuration as plain structs. Defaults stand here and nowhere else; ranges, descriptions and JSON names stand
// in the field list (fields.cpp), which parses, validates, prints and documents them.
//
// std::optional: an absent value means "follows from other keys". `resolve` fills in those that are plain numbers
// (ffn_width, residual_gate, embedding_std, vocabulary); those whose JSON value is "auto" stay absent, so that the
// resolved file still follows depth and placement when someone overrides a key; derived.h computes their value.

struct ModelConfig {
  StackKind stack = StackKind::transformer;
  std::int64_t depth = 12;
  std::int64_t width = 64;
  std::int64_t heads = 4;
  std::optional<std::int64_t> ffn_width;  ///< 4·width
  Activation activation = Activation::gelu;
  Norm norm = Norm::layernorm;
  double norm_epsilon = 1e-5;
  Placement placement = Placement::pre;
  Residual residual = Residual::add;
  std::optional<double> residual_gate;  ///< scaled 1, rezero 0, layerscale 0.1
  double branch_scale = 1;
  double branch_scale_exponent = 0;
  std::int64_t branch_warmup = 0;
  std::optional<double> deepnorm_alpha;  ///< "auto"
  std::optional<double> deepnorm_beta;   ///< "auto"
  double mix_post_fraction = 0.25;
  std::optional<double> keel_alpha;  ///< "auto"
  Initialization initialization = Initialization::xavier_normal;
  double init_std = 0.02;
  double branch_init_scale = 1;
  double query_key_init_scale = 1;
  std::optional<double> embedding_std;  ///< by scheme
  std::optional<bool> embedding_norm;   ///< "auto"
  std::int64_t block_layers = 2;
  std::optional<bool> final_norm;  ///< "auto"
  Positions positions = Positions::learned;
  bool causal = true;
  bool bias = true;
  bool tie_embeddings = false;
  bool qk_norm = false;
  double dropout = 0;

  bool operator==(const ModelConfig&) const = default;
};

struct DataConfig {
  std::int64_t seed = 0;
  Task task = Task::markov;
  std::vector<std::string> files;
  Tokenizer tokenizer = Tokenizer::byte;
  std::optional<std::int64_t> vocabulary;  ///< 64; for text what the tokenizer needs (256 for bytes)
  std::int64_t successors = 4;
  std::int64_t context = 64;
  double padding_fraction = 0;
  std::int64_t inputs = 32;
  std::int64_t side = 16;
  std::int64_t classes = 10;
  double validation_fraction = 0.1;

  bool operator==(const DataConfig&) const = default;
};

struct TrainConfig {
  std::int64_t steps = 200;
  std::int64_t batch = 16;
  std::int64_t accumulation = 1;
  OptimizerKind optimizer = OptimizerKind::adamw;
  double learning_rate = 1e-3;
  std::int64_t warmup = 0;
  Decay decay = Decay::constant;
  double final_fraction = 0;
  std::vector<double> betas = {0.9, 0.98};
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  std::optional<double> clip_norm;  ///< null: off
  std::int64_t evaluate_every = 0;
  std::int64_t evaluate_batches = 8;
  OnNonfinite on_nonfinite = OnNonfinite::stop;

  bool operator==(const TrainConfig&) const = default;
};

struct SpikeConfig {
  std::int64_t window = 64;
  std::int64_t level_window = 9;
  double threshold = 6;
  std::int64_t min_count = 16;
  double min_jump_loss = 0.1;
  double min_jump_grad_norm = 0.69314718055994530942;  ///< ln 2
  std::int64_t rearm = 32;
  std::int64_t max_gap = 5;

  bool operator==(const SpikeConfig&) const = default;
};

struct RecordConfig {
  std::int64_t steps_every = 1;
  std::int64_t layers_every = 10;
  bool tensors = false;
  std::vector<std::string> quantities = {"standard"};  ///< a single word may be written without the list
  SpikeConfig spikes;

  bool operator==(const RecordConfig&) const = default;
};

struct CheckpointConfig {
  std::int64_t every = 0;
  std::int64_t keep = 2;

  bool operator==(const CheckpointConfig&) const = default;
};

struct ComputeConfig {
  std::string device = "cpu";  ///< cpu, cuda, cuda:N, auto
  std::int64_t threads = 1;
  Dtype dtype = Dtype::float32;
  Backend backend = Backend::automatic;
  bool recompute = false;
  bool flush_denormals = false;

  bool operator==(const ComputeConfig&) const = default;
};

struct Config {
  std::string name;  ///< label of the study; the file's stem when absent
  std::int64_t seed = 1;
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  RecordConfig record;
  CheckpointConfig checkpoint;
  ComputeConfig compute;

  bool operator==(const Config&) const = default;
};

}  // namespace gradflow
