#pragma once

#include "config/config.h"

namespace gradflow {

// Numbers that follow from the configuration. One place each: the model, describe and the derived part of config.json
// read them here.

/// DeepNorm's skip factor α = (2N)^¼, N the number of blocks (Wang et al. 2022, table 1, decoder- or encoder-only).
double deepnorm_alpha(const ModelConfig& model);
/// DeepNorm's initialization gain β = (8N)^-¼, for v, out, ffn.in and ffn.out only.
double deepnorm_beta(const ModelConfig& model);
/// KEEL's skip factor, 2N unless configured.
double keel_alpha(const ModelConfig& model);
/// Admin's initial skip vector ω = √((n+1)/ln(n+1) − 1), n = 2N residual sub-layers (Liu et al. 2020, library
/// constant).
double admin_omega(const ModelConfig& model);
/// The factor on the initial std of v, out, ffn.in and ffn.out that the placement prescribes.
double placement_gain(const ModelConfig& model);
/// The stage 0, 1 or 2 of a resnet's block (from 1): the blocks in thirds.
std::int64_t resnet_stage(const ModelConfig& model, std::int64_t block);
/// The constant factor on a branch: branch_scale / depth^branch_scale_exponent.
double branch_factor(const ModelConfig& model);
/// ProRes: min(s/(T·l), 1) at update s (from 1) in block l (from 1), T = branch_warmup; 1 when T is 0.
double branch_warmup_factor(const ModelConfig& model, std::int64_t step, std::int64_t block);
/// Whether a norm stands after the last block / after the embedding: configured, else by placement; never without a
/// norm.
bool has_final_norm(const ModelConfig& model);
bool has_embedding_norm(const ModelConfig& model);
/// Initial std of token and position embeddings: configured, else by scheme.
double embedding_std(const ModelConfig& model);
/// Start of a residual form's learned scale; absent for the forms that have none.
std::optional<double> initial_gate(Residual residual);
/// Vocabulary when the configuration names none; absent for text by characters, whose vocabulary the text decides.
std::optional<std::int64_t> default_vocabulary(const DataConfig& data);
/// Tokens at each sequence's end that are padding, ⌊padding_fraction·context⌋: at least one token is real.
std::int64_t padding_tokens(const DataConfig& data);
/// ⌊fraction·whole⌋ as a person reckons it: 0.29 of 100 is 29, though 0.29·100 in binary is a little less.
std::int64_t share_of(double fraction, std::int64_t whole);
/// Moments of the gradient that the optimizer goes on from: two with Adam, SGD's momentum, none with SGD without one.
int moment_count(const TrainConfig& train);
/// Learning rate of update `step` (from 1): warm-up lr·min(1, s/warmup), then the decay.
double learning_rate(const TrainConfig& train, std::int64_t step);

}  // namespace gradflow
