#include <array>

#include "output/table.h"

namespace gradflow {
namespace {

constexpr auto steps = std::to_array<Column>({
    {"step", "the update that the row describes, from 1"},
    {"tokens", "tokens seen up to and with this step"},
    {"learning_rate", "the learning rate that this update used"},
    {"loss", "mean loss a token (nats for cross-entropy) of the step's batch, before the update"},
    {"grad_norm", "‖∂L/∂θ‖ of all parameters, after accumulation, before clipping, before the update"},
    {"clip_factor", "what clipping multiplied the gradient by: min(1, clip_norm/grad_norm); 1 without clipping"},
    {"weight_norm", "‖θ‖ of all parameters, after the update"},
    {"update_norm", "‖Δθ‖, the length of the optimizer's real step, decay included"},
    {"eval_loss", "mean loss a token on the validation batches, before the update; empty when not evaluated"},
    {"spike_loss", "1 when the loss is a spike, else 0"},
    {"spike_grad_norm", "1 when grad_norm is a spike, else 0"},
    {"nonfinite", "number of non-finite gradient elements; a non-finite loss counts 1 more"},
});

constexpr auto layers = std::to_array<Column>({
    {"step", "the update that the row describes, from 1"},
    {"layer", "0 embedding or stem, 1…N the blocks from the input up, N+1 what follows them"},
    {"sublayer", "embedding, stem, attention, ffn, dense, conv, final_norm or head"},
    {"grad_norm", "√Σ‖∂L/∂W‖² over the sub-layer's parameters (its norms and gates included), before clipping"},
    {"weight_norm", "‖W‖ of the sub-layer's parameters, after the update"},
    {"update_norm", "‖ΔW‖, the length of the optimizer's real step, decay included"},
    {"update_ratio", "‖ΔW‖/‖W before the update‖; empty where the weights were zero"},
    {"norm_input_rms", "RMS of what enters the norm after the sum, else the norm before the branch; empty without one"},
    {"stream_mean", "mean over batch, positions and features of the stream after the sub-layer"},
    {"stream_variance", "biased variance over the features of one token of the stream after the sub-layer, averaged"},
    {"stream_rms", "root of the mean square of the stream after the sub-layer"},
    {"stream_grad_norm", "‖∂L/∂x‖ of the stream x after the sub-layer, L the mean over tokens"},
    {"branch_rms", "RMS of the term that the branch adds to the skip, its factors and gates included"},
    {"branch_ratio", "branch_rms divided by the RMS of the stream that enters the sub-layer"},
    {"nonfinite", "number of non-finite elements in the sub-layer's gradient"},
    {"branch_cosine", "cosine between the branch's term and the skip, mean over tokens"},
    {"branch_variance_gain", "Var(F's output)/Var(F's input) over tokens and features"},
    {"token_norm_cv", "standard deviation over mean, over tokens, of ‖x‖ after the sub-layer"},
    {"branch_norm_cv", "standard deviation over mean, over tokens, of the norm of the branch's term"},
    {"mean_share", "mean over tokens of abs(mean of x)/RMS of x after the sub-layer; √(2/(πd)) by chance"},
    {"stream_grad_cosine", "cosine between ∂L/∂x here and ∂L/∂x after the last block"},
    {"dual_rms", "RMS of ResiDual's second stream after the sub-layer"},
    {"dual_grad_norm", "‖∂L/∂·‖ of ResiDual's second stream after the sub-layer"},
    {"skip_grad_share",
     "norm of the gradient through the skip, divided by the norm of the stream's gradient below the "
     "sub-layer"},
    {"attention_entropy",
     "−Σ a ln a of an attention row divided by ln(visible positions), mean over rows and heads; rows "
     "that see one position left out"},
    {"attention_logit_max", "largest attention score before the softmax"},
    {"zero_fraction", "share of exact zeros after the activation"},
    {"angular_distance", "(1/π)·arccos of the cosine between the stream before and after, mean over tokens"},
    {"token_diversity_db",
     "20·log10(‖X − 1x̄ᵀ‖/‖X‖) in dB, x̄ the mean over positions, averaged over sequences; low where "
     "tokens collapse onto one another"},
});

constexpr auto tensors = std::to_array<Column>({
    {"step", "the update that the row describes, from 1"},
    {"tensor", "canonical name of the parameter"},
    {"grad_norm", "‖∂L/∂W‖, after accumulation, before clipping, before the update"},
    {"weight_norm", "‖W‖ after the update"},
    {"update_norm", "‖ΔW‖, the length of the optimizer's real step, decay included"},
    {"update_ratio", "‖ΔW‖/‖W before the update‖; empty where W was zero"},
    {"spectral_norm", "largest singular value of W after the update; empty for what is no matrix"},
});

constexpr auto spikes = std::to_array<Column>({
    {"series", "loss or grad_norm"},
    {"kind", "spike, nonfinite, or shift (a lasting change of level)"},
    {"start_step", "the first flagged step of the episode"},
    {"peak_step", "the step with the highest score"},
    {"end_step", "the last flagged step of the episode"},
    {"level_before", "median of the newest accepted values before the episode, in the series' unit"},
    {"peak", "the value at peak_step, in the series' unit"},
    {"score", "(peak − level)/scale, for grad_norm of logarithms; inf for a non-finite value"},
    {"recovered", "1 when steps without a flag followed, 0 for a shift or a run that ended with a flag"},
    {"first_step", "where it began: the earliest flagged step of any sub-layer near the episode; empty when none"},
    {"first_layer", "the layer of that flag"},
    {"first_sublayer", "the sub-layer of that flag"},
    {"first_quantity", "the quantity of that flag: grad_norm or update_ratio"},
    {"first_score", "the score of that flag"},
});

constexpr auto timing = std::to_array<Column>({
    {"step", "the update that the row describes, from 1"},
    {"seconds", "wall-clock seconds since the start"},
    {"tokens_per_second", "tokens a second since the row before"},
    {"recording_share",
     "share of the time since the row before that went into recording, 0 to 1; an estimate in stacks of more than 32 "
     "segments"},
});

constexpr auto quantities = std::to_array<Column>({
    {"step", "the update after which it was measured; 0 is the initial state"},
    {"layer", "as in layers.csv; empty for a quantity of the whole stack"},
    {"sublayer", "as in layers.csv; empty for a quantity of a block or the whole stack"},
    {"quantity", "its name"},
    {"value", "its value"},
});

constexpr auto probe = std::to_array<Column>({
    {"placement", "model.placement of the stack"},
    {"norm", "model.norm"},
    {"residual", "model.residual"},
    {"initialization", "model.initialization"},
    {"depth", "model.depth, the number of blocks N"},
    {"seed", "seed of weights and data"},
    {"layer", "as in layers.csv; empty for a quantity of the whole stack"},
    {"sublayer", "as in layers.csv; empty for a quantity of a block or the whole stack"},
    {"quantity", "its name, a column of layers.csv or a quantity of quantities.csv"},
    {"value", "its value before the first update"},
    {"predicted_low", "lower end of what theory gives, an expectation over seeds; empty without a closed form"},
    {"predicted_high", "upper end; equal to the lower one where theory gives one number"},
});

constexpr auto probe_means = std::to_array<Column>({
    {"placement", "model.placement of the stacks"},
    {"norm", "model.norm of the stack"},
    {"residual", "model.residual of the stack"},
    {"initialization", "model.initialization of the stack"},
    {"depth", "model.depth, the number of blocks N"},
    {"layer", "as in probe.csv"},
    {"sublayer", "as in probe.csv"},
    {"quantity", "as in probe.csv"},
    {"seeds", "number of seeds that have the value"},
    {"mean", "mean over seeds"},
    {"low", "lower end of its 95 % Student interval; empty below two seeds"},
    {"high", "upper end"},
    {"predicted_low", "as in probe.csv, the mean over seeds"},
    {"predicted_high", "as in probe.csv, the mean over seeds"},
});

}  // namespace

std::span<const Column> steps_columns() { return steps; }
std::span<const Column> layers_columns() { return layers; }
std::span<const Column> tensors_columns() { return tensors; }
std::span<const Column> spikes_columns() { return spikes; }
std::span<const Column> timing_columns() { return timing; }
std::span<const Column> quantities_columns() { return quantities; }
std::span<const Column> probe_columns() { return probe; }
std::span<const Column> probe_means_columns() { return probe_means; }

}  // namespace gradflow
