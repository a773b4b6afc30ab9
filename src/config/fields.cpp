#include "config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "config/derived.h"
#include "config/text_rules.h"

namespace gradflow {
namespace {

template <class Value>
struct Access {
  const Value& (*read)(const Config&);
  Value& (*write)(Config&);
};

template <class Kind>
class FieldOf final : public Field {
 public:
  using Value = typename Kind::Value;
  using Follows = Value (*)(const Config&);

  FieldOf(std::string_view key, Access<Value> access, Kind kind, Follows follows, std::string meaning,
          std::string default_words, std::vector<std::string_view> also_called)
      : Field(key, std::move(meaning), std::move(default_words), std::move(also_called)),
        access_(access),
        kind_(kind),
        follows_(follows) {}

  std::string type() const override { return kind_.type(); }
  std::string range() const override { return kind_.range(); }
  Json schema() const override { return kind_.schema(); }
  std::string assign(const JsonValue& from, Config& config) const override {
    return kind_.read(from, access_.write(config));
  }
  JsonValue from_option(std::string_view text) const override { return kind_.from_option(text); }
  Json value(const Config& config) const override { return kind_.write(access_.read(config)); }
  void resolve(Config& config) const override {
    if (follows_ && access_.read(config) == Value{}) access_.write(config) = follows_(config);
  }
  bool is_default(const Config& config) const override {
    static const Config defaults;
    return access_.read(config) == (follows_ ? follows_(config) : access_.read(defaults));
  }

 private:
  Access<Value> access_;
  Kind kind_;
  Follows follows_;
};

/// What only some rows have.
template <class Value>
struct Notes {
  std::vector<std::string_view> also_called = {};
  std::string default_words = {};
  Value (*follows)(const Config&) = nullptr;  ///< the value when the key is absent
};

using Fields = std::vector<std::unique_ptr<const Field>>;

template <class Kind, class Path>
void add(Fields& list, std::string_view key, Path path, Kind kind, std::string meaning,
         std::type_identity_t<Notes<typename Kind::Value>> notes = {}) {
  list.push_back(std::make_unique<FieldOf<Kind>>(key, Access<typename Kind::Value>{path, path}, kind, notes.follows,
                                                 std::move(meaning), std::move(notes.default_words),
                                                 std::move(notes.also_called)));
}

// A key is spelled as the member it fills, so that the two cannot differ.
#define KEY(path) \
#path, [](auto& config) -> auto& { return config.path; }

constexpr std::int64_t million = 1'000'000;

std::string gates_in_words() {
  std::string out;
  for (const std::string_view name : names_of(Residual{}))
    if (const auto gate = initial_gate(*choice_named<Residual>(name)))
      out += fmt::format("{}`{}` {}", out.empty() ? "" : ", ", name, *gate);
  return out;
}

std::string vocabulary_in_words() {
  DataConfig bytes;
  bytes.task = Task::text;
  return fmt::format("{} ({} for bytes; for characters as many as the text has)", *default_vocabulary({}),
                     *default_vocabulary(bytes));
}

void add_general(Fields& list) {
  add(list, KEY(name), Text{name_rule}, "label of the study; first folder under results/",
      {.also_called = {"experiment", "run_name"}, .default_words = "the file's stem"});
  add(list, KEY(seed), Count{}, "initialization, data order and dropout draw from separate streams derived from it",
      {.also_called = {"random_seed", "rng"}});
}

void add_model(Fields& list) {
  add(list, KEY(model.stack), Choice<StackKind>{}, "kind of network", {.also_called = {"architecture", "model_type"}});
  add(list, KEY(model.depth), Count{1, million, "blocks"},
      "number of residual blocks N (a Transformer block is attention and feed-forward: two sub-layers; an MLP or "
      "ResNet "
      "block is two weight layers)",
      {.also_called = {"layers", "n_layers", "n_layer", "num_layers", "num_hidden_layers", "blocks"}});
  add(list, KEY(model.width), Count{1, 100'000, "features"},
      "features d of the stream; for resnet the channels of the first stage (three stages, doubling)",
      {.also_called = {"d_model", "hidden_size", "n_embd", "embed_dim", "dim", "d"}});
  add(list, KEY(model.heads), Count{1, 100'000, "heads"}, "attention heads; must divide width",
      {.also_called = {"n_heads", "n_head", "num_heads", "num_attention_heads", "nhead"}});
  add(list, KEY(model.ffn_width), Optional<Count>{{1, million, "features"}}, "hidden features of the feed-forward",
      {.also_called = {"d_ff", "ff", "ffn", "dim_feedforward", "intermediate_size", "mlp_width"},
       .default_words = "4·width",
       .follows = [](const Config& c) -> std::optional<std::int64_t> { return 4 * c.model.width; }});
  add(list, KEY(model.activation), Choice<Activation>{}, "activation of the feed-forward; gelu is the exact form (erf)",
      {.also_called = {"act", "hidden_act", "nonlinearity"}});
  add(list, KEY(model.norm), Choice<Norm>{}, "the norm at every site of the placement",
      {.also_called = {"normalization", "norm_type", "layer_norm"}});
  add(list, KEY(model.norm_epsilon), Number{positive}, "ε inside the root of the norm",
      {.also_called = {"norm_eps", "layer_norm_eps", "eps", "rms_norm_eps"}});
  add(list, KEY(model.placement), Choice<Placement>{}, "where the norms stand and which constants go with them",
      {.also_called = {"norm_placement", "norm_position", "norm_first", "pre_norm", "post_norm"}});
  add(list, KEY(model.residual), Choice<Residual>{}, "how skip and branch are joined",
      {.also_called = {"skip", "shortcut"}});
  add(list, KEY(model.residual_gate), Optional<Number>{{any_number}, Absent::null},
      "initial value of the residual form's learned scale",
      {.also_called = {"gate", "gate_value", "layerscale_init"},
       .default_words = "by residual: " + gates_in_words() + "; the others have none (null)",
       .follows = [](const Config& c) { return initial_gate(c.model.residual); }});
  add(list, KEY(model.branch_scale), Number{}, "constant factor on every branch");
  add(list, KEY(model.branch_scale_exponent), Number{{.least = -4, .most = 4}},
      "the factor is also divided by depth to this power (0.5: 1/√N)");
  add(list, KEY(model.branch_warmup), Count{.unit = "optimizer steps"},
      "T > 0: branch factor min(s/(T·l), 1) at update s in block l (ProRes); 0: off");
  add(list, KEY(model.deepnorm_alpha), Optional<Number>{{not_negative}, Absent::automatic},
      "DeepNorm's factor on the skip; \"auto\": (2N)^¼");
  add(list, KEY(model.deepnorm_beta), Optional<Number>{{not_negative}, Absent::automatic},
      "DeepNorm's gain on the initial std of v, out, ffn.in, ffn.out; \"auto\": (8N)^-¼");
  add(list, KEY(model.mix_post_fraction), Number{fraction}, "mix_ln: the first ⌊fraction·N⌋ blocks are post");
  add(list, KEY(model.keel_alpha), Optional<Number>{{not_negative}, Absent::automatic},
      "KEEL's factor on the skip; \"auto\": 2N");
  add(list, KEY(model.initialization), Choice<Initialization>{}, "initial distribution of the matrices",
      {.also_called = {"init", "initializer", "weight_init"}});
  add(list, KEY(model.init_std), Number{not_negative}, "standard deviation for normal and gpt2",
      {.also_called = {"initializer_range", "std"}});
  add(list, KEY(model.branch_init_scale), Number{not_negative},
      "extra factor on the last matrix of every branch (0: branches start at zero)");
  add(list, KEY(model.query_key_init_scale), Number{not_negative}, "extra factor on q and k (0: uniform attention)");
  add(list, KEY(model.embedding_std), Optional<Number>{{not_negative}},
      "initial standard deviation of token and position embeddings",
      {.default_words = "√½; `init_std` for normal and gpt2; width^-½·(9N)^-¼ for t_fixup; width^-½ when tied",
       .follows = [](const Config& c) -> std::optional<double> {
         ModelConfig model = c.model;
         model.embedding_std.reset();
         return embedding_std(model);
       }});
  add(list, KEY(model.embedding_norm), Optional<Flag>{{}, Absent::automatic},
      "a norm right after the embedding; \"auto\": by placement (peri has one)");
  add(list, KEY(model.block_layers), Count{1, 2, "weight layers"}, "mlp: weight layers of a block");
  add(list, KEY(model.final_norm), Optional<Flag>{{}, Absent::automatic},
      "a norm after the last block; \"auto\": by placement", {.also_called = {"ln_f"}});
  add(list, KEY(model.positions), Choice<Positions>{}, "position embedding",
      {.also_called = {"pos", "position_embedding", "positional_encoding"}});
  add(list, KEY(model.causal), Flag{}, "a position sees itself and earlier ones only", {.also_called = {"mask"}});
  add(list, KEY(model.bias), Flag{}, "linear layers have a bias", {.also_called = {"use_bias"}});
  add(list, KEY(model.tie_embeddings), Flag{}, "the head reuses the embedding matrix",
      {.also_called = {"tie_word_embeddings", "tied", "weight_tying"}});
  add(list, KEY(model.qk_norm), Flag{}, "LayerNorm on q and k of each head before the scores",
      {.also_called = {"qk_layernorm"}});
  add(list, KEY(model.dropout), Number{fraction_below_one}, "probability on each branch and on the embedding",
      {.also_called = {"dropout_rate", "p"}});
}

void add_data(Fields& list) {
  add(list, KEY(data.seed), Count{}, "fixes what the task is (the chain, the teacher, the clusters), whatever seed is");
  add(list, KEY(data.task), Choice<Task>{}, "what is learned: sequences, text, vectors or images",
      {.also_called = {"dataset", "kind", "type"}});
  add(list, KEY(data.files), Texts{path_rule}, "text, cifar10: paths relative to the configuration file",
      {.also_called = {"file", "path", "paths", "data_path"}});
  add(list, KEY(data.tokenizer), Choice<Tokenizer>{}, "what a token of text is", {.also_called = {"tokens"}});
  add(list, KEY(data.vocabulary), Optional<Count>{{2, 10 * million, "symbols"}, Absent::null}, "number of symbols V",
      {.also_called = {"vocab", "vocab_size", "n_vocab", "symbols"},
       .default_words = vocabulary_in_words(),
       .follows = [](const Config& c) { return default_vocabulary(c.data); }});
  add(list, KEY(data.successors), Count{1, 1000, "symbols"},
      "markov: successors of a symbol, probabilities ½, ¼, …, the last two equal");
  add(list, KEY(data.context), Count{1, million, "tokens"}, "tokens a sequence",
      {.also_called = {"context_length", "seq_len", "sequence_length", "block_size", "max_length", "ctx"}});
  add(list, KEY(data.padding_fraction), Number{fraction_below_one},
      "share of each sequence's tail that is padding: out of loss, attention and BatchNorm statistics",
      {.also_called = {"pad_fraction", "padding"}});
  add(list, KEY(data.inputs), Count{1, million, "features"}, "vectors: features of an input",
      {.also_called = {"input_size", "in_features"}});
  add(list, KEY(data.side), Count{4, 1024, "pixels"}, "images: height and width", {.also_called = {"image_size"}});
  add(list, KEY(data.classes), Count{2, million, "classes"}, "vectors and images: classes",
      {.also_called = {"num_classes", "n_classes"}});
  add(list, KEY(data.validation_fraction), Number{fraction_below_one},
      "tail of the text kept for validation; synthetic tasks use another stream",
      {.also_called = {"val_fraction", "validation_split"}});
}

void add_train(Fields& list) {
  add(list, KEY(train.steps), Count{.least = 1, .unit = "optimizer steps"}, "length of the run",
      {.also_called = {"max_steps", "iterations", "max_iters", "num_steps", "epochs"}});
  add(list, KEY(train.batch), Count{1, million, "sequences"}, "sequences a micro-batch",
      {.also_called = {"batch_size", "micro_batch", "bs"}});
  add(list, KEY(train.accumulation), Count{1, million, "micro-batches"}, "micro-batches a step",
      {.also_called = {"accum", "gradient_accumulation_steps", "grad_accum", "accumulate"}});
  add(list, KEY(train.optimizer), Choice<OptimizerKind>{}, "adamw (decoupled decay), adam (L2) or sgd",
      {.also_called = {"optim", "opt"}});
  add(list, KEY(train.learning_rate), Number{not_negative}, "peak of the schedule",
      {.also_called = {"lr", "max_lr", "learningrate"}});
  add(list, KEY(train.warmup), Count{.unit = "optimizer steps"}, "linear: update s (from 1) uses lr·min(1, s/warmup)",
      {.also_called = {"warmup_steps", "warmup_iters", "num_warmup_steps"}});
  add(list, KEY(train.decay), Choice<Decay>{}, "schedule after the warm-up",
      {.also_called = {"schedule", "scheduler", "lr_scheduler", "lr_decay"}});
  add(list, KEY(train.final_fraction), Number{fraction}, "linear, cosine: share of the peak at the last step",
      {.also_called = {"min_lr_ratio", "min_lr"}});
  add(list, KEY(train.betas), Pair{fraction_below_one}, "adam, adamw: decay of the first and second moment",
      {.also_called = {"beta", "adam_betas"}});
  add(list, KEY(train.epsilon), Number{positive}, "adam, adamw: ε of the denominator", {.also_called = {"adam_eps"}});
  add(list, KEY(train.momentum), Number{fraction_below_one}, "sgd: momentum");
  add(list, KEY(train.weight_decay), Number{not_negative}, "acts on matrices and embeddings only",
      {.also_called = {"wd", "l2"}});
  add(list, KEY(train.clip_norm), Optional<Number>{{positive}, Absent::null},
      "largest global gradient norm; null: no clipping",
      {.also_called = {"clip", "grad_clip", "max_grad_norm", "gradient_clip_val"}});
  add(list, KEY(train.evaluate_every), Count{.unit = "optimizer steps"}, "0: no evaluation",
      {.also_called = {"eval_every", "eval_interval", "eval_steps"}});
  add(list, KEY(train.evaluate_batches), Count{1, million, "batches"}, "batches of one evaluation",
      {.also_called = {"eval_batches", "eval_iters"}});
  add(list, KEY(train.on_nonfinite), Choice<OnNonfinite>{}, "at a loss or gradient that is not finite; skip: no update",
      {.also_called = {"on_nan"}});
}

void add_record(Fields& list) {
  add(list, KEY(record.steps_every), Count{.least = 1, .unit = "optimizer steps"},
      "rows of steps.csv; always the first and last step", {.also_called = {"log_every", "log_interval"}});
  add(list, KEY(record.layers_every), Count{.least = 1, .unit = "optimizer steps"},
      "rows of layers.csv; always the first and last step");
  add(list, KEY(record.tensors), Flag{}, "also tensors.csv, one row a parameter tensor");
  add(list, KEY(record.quantities), Texts{quantity_rule, true},
      "none (parameter columns only), standard, all, or names of columns and on-demand quantities",
      {.also_called = {"metrics", "columns"}});
  add(list, KEY(record.spikes.window), Count{2, million, "values"}, "accepted values that the detector looks back on");
  add(list, KEY(record.spikes.level_window), Count{1, million, "values"}, "newest of them whose median is the level");
  add(list, KEY(record.spikes.threshold), Number{positive}, "scales above the level that make a spike");
  add(list, KEY(record.spikes.min_count), Count{2, million, "values"}, "nothing is flagged before so many");
  add(list, KEY(record.spikes.min_jump_loss), Number{positive}, "smallest jump of the loss, nats");
  add(list, KEY(record.spikes.min_jump_grad_norm), Number{positive},
      "smallest jump of ln of the gradient norm; the default is ln 2");
  add(list, KEY(record.spikes.rearm), Count{1, million, "optimizer steps"},
      "flagged steps in a row after which the new level is taken for a lasting shift");
  add(list, KEY(record.spikes.max_gap), Count{0, million, "optimizer steps"},
      "steps without a flag that an episode survives");
}

void add_checkpoint(Fields& list) {
  add(list, KEY(checkpoint.every), Count{.unit = "optimizer steps"}, "0: only at the end and on a signal",
      {.also_called = {"save_every", "save_steps", "save_interval", "checkpoint_every"}});
  add(list, KEY(checkpoint.keep), Count{1, million, "checkpoints"}, "newest checkpoints that stay",
      {.also_called = {"save_total_limit"}});
}

void add_compute(Fields& list) {
  add(list, KEY(compute.device), Text{device_rule}, "only auto may fall back to the CPU",
      {.also_called = {"gpu", "accelerator"}});
  add(list, KEY(compute.threads), Count{1, 1024, "threads"}, "threads of the numerical library",
      {.also_called = {"num_threads", "workers", "n_jobs"}});
  add(list, KEY(compute.dtype), Choice<Dtype>{"(the same on cpu and cuda)"},
      "bfloat16 keeps statistics, norms and the optimizer's weights in float32",
      {.also_called = {"precision", "floating_point", "amp"}});
  add(list, KEY(compute.backend), Choice<Backend>{}, "implementation of the sub-layers");
  add(list, KEY(compute.recompute), Flag{},
      "runs blocks again in the backward pass, so that activations take memory as the root of the depth",
      {.also_called = {"activation_checkpointing", "gradient_checkpointing", "checkpointing"}});
  add(list, KEY(compute.flush_denormals), Flag{}, "hides gradients below 1.2e-38; logged");
}

#undef KEY

Fields every_field() {
  Fields list;
  add_general(list);
  add_model(list);
  add_data(list);
  add_train(list);
  add_record(list);
  add_checkpoint(list);
  add_compute(list);
  return list;
}

}  // namespace

std::span<const std::unique_ptr<const Field>> fields() {
  static const Fields list = every_field();
  return list;
}

std::span<const std::string_view> field_groups() {
  static const std::vector<std::string_view> groups = [] {
    std::vector<std::string_view> out;
    for (const auto& field : fields())
      for (std::size_t dot = field->key().find('.'); dot != std::string_view::npos;
           dot = field->key().find('.', dot + 1)) {
        const std::string_view group = field->key().substr(0, dot);
        if (std::find(out.begin(), out.end(), group) == out.end()) out.push_back(group);
      }
    return out;
  }();
  return groups;
}

const Field* find_field(std::string_view key) {
  for (const auto& field : fields())
    if (field->key() == key) return field.get();
  return nullptr;
}

std::string_view last_component(std::string_view key) { return key.substr(key.rfind('.') + 1); }

std::string value_in_words(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const Json& element : value) out += (out.empty() ? "" : "+") + value_in_words(element);
  return out;
}

}  // namespace gradflow
