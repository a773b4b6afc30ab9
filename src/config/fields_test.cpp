#include "config/fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "config/resolved.h"

namespace gradflow {
namespace {

/// One key of the contract, written down a second time on purpose: a changed default or range shows
/// here. `absent` is the default as JSON; `remedy` ends the message for each refused value.
struct Row {
  std::string key;
  std::string absent;
  std::vector<std::string> accepted;
  std::vector<std::string> refused;
  std::string remedy;
};

const std::vector<std::string> no_flags{"0", "1", "\"yes\"", "null", "[]"};
const std::vector<std::string> no_choice{"\"nonsense\"", "\"\"", "3", "true", "null", "[\"pre\"]"};

Row flag(std::string key, std::string absent) {
  return {std::move(key), std::move(absent), {"true", "false"}, no_flags, "write true or false"};
}

Row choice(std::string key, std::string absent, std::vector<std::string> words) {
  std::string remedy = "write one of ";
  std::vector<std::string> accepted;
  for (const std::string& word : words) {
    remedy += (accepted.empty() ? "" : ", ") + word;
    accepted.push_back("\"" + word + "\"");
  }
  return {std::move(key), std::move(absent), std::move(accepted), no_choice, remedy};
}

/// A count in [least, most]; an empty `most` is 2^63−1.
Row count(std::string key, std::string absent, std::int64_t least, std::string most, const std::string& unit) {
  const std::string top = most.empty() ? "9223372036854775807" : most;
  const std::string above = most.empty() ? "9223372036854775808" : fmt::format("{}", std::stoll(most) + 1);
  const std::string range = most.empty() ? fmt::format("at least {}", least) : fmt::format("{} to {}", least, most);
  return {std::move(key),
          std::move(absent),
          {std::to_string(least), top, std::to_string(least) + ".0", std::to_string(least) + "e0"},
          {std::to_string(least - 1), above, "1.5", "1e-1", "1e999", "-1e999", "1e30", "true", "null", "[1]", "{}",
           "\"x\""},
          fmt::format("write a whole number{}, {}", unit.empty() ? "" : " of " + unit, range)};
}

Row number(std::string key, std::string absent, std::vector<std::string> accepted, std::vector<std::string> outside,
           const std::string& range) {
  for (const char* wrong : {"1e999", "-1e999", "true", "[1]", "{}", "\"x\""}) outside.push_back(wrong);
  return {std::move(key), std::move(absent), std::move(accepted), std::move(outside),
          "write a number" + (range.empty() ? "" : ", " + range)};
}

Row any_number_row(std::string key, std::string absent) {
  return number(std::move(key), std::move(absent), {"0", "-3.5", "1e-3", "1E-3", "1e300"}, {"null"}, "");
}
Row not_negative_row(std::string key, std::string absent) {
  return number(std::move(key), std::move(absent), {"0", "1", "1e-3", "0.001", "1E-3"}, {"-1e-9", "null"},
                "at least 0");
}
Row positive_row(std::string key, std::string absent) {
  return number(std::move(key), std::move(absent), {"1e-300", "1", "2.5"}, {"0", "-1", "1e-999", "null"},
                "greater than 0");
}
Row below_one_row(std::string key, std::string absent) {
  return number(std::move(key), std::move(absent), {"0", "0.5", "0.999999"}, {"-0.1", "1", "null"},
                "at least 0 and below 1");
}
Row fraction_row(std::string key, std::string absent) {
  return number(std::move(key), std::move(absent), {"0", "1", "0.5"}, {"-0.1", "1.0000001", "null"}, "0 to 1");
}

/// Allows one more word beside the values of `row`.
Row or_word(Row row, const std::string& word) {
  row.accepted.push_back(word);
  std::erase(row.refused, word);
  row.remedy += ", or " + word;
  return row;
}

const std::string auto_word = "\"auto\"";
const std::string steps = "optimizer steps";

std::vector<Row> contract() {
  return {
      {"name",
       "\"file\"",
       {"\"a b\"", "\"größe\""},
       {"\"\"", "\"a/b\"", "\"..\"", "\"a\\u0001\"", "3", "null"},
       "write a name without slashes, one component of a path"},
      count("seed", "1", 0, "", ""),
      choice("model.stack", "\"transformer\"", {"transformer", "mlp", "resnet"}),
      count("model.depth", "12", 1, "1000000", "blocks"),
      count("model.width", "64", 1, "100000", "features"),
      count("model.heads", "4", 1, "100000", "heads"),
      count("model.ffn_width", "256", 1, "1000000", "features"),
      choice("model.activation", "\"gelu\"", {"gelu", "relu", "tanh", "identity"}),
      choice("model.norm", "\"layernorm\"", {"none", "layernorm", "rmsnorm", "center", "batchnorm", "dyt"}),
      positive_row("model.norm_epsilon", "1e-05"),
      choice("model.placement", "\"pre\"",
             {"none", "pre", "post", "deepnorm", "sandwich", "peri", "reordered", "lns", "sub_ln", "normformer",
              "resi_dual", "b2t", "admin", "keel", "hybrid_norm", "mix_ln"}),
      choice("model.residual", "\"add\"",
             {"add", "none", "scaled", "rezero", "sqrt2", "layerscale", "highway", "concat", "gate_literal"}),
      or_word(any_number_row("model.residual_gate", "null"), "null"),
      any_number_row("model.branch_scale", "1"),
      number("model.branch_scale_exponent", "0", {"0", "0.5", "1", "-4", "4"}, {"-4.5", "5", "null"}, "-4 to 4"),
      count("model.branch_warmup", "0", 0, "", steps),
      or_word(not_negative_row("model.deepnorm_alpha", auto_word), auto_word),
      or_word(not_negative_row("model.deepnorm_beta", auto_word), auto_word),
      fraction_row("model.mix_post_fraction", "0.25"),
      or_word(not_negative_row("model.keel_alpha", auto_word), auto_word),
      choice("model.initialization", "\"xavier_normal\"",
             {"xavier_normal", "xavier_uniform", "he_normal", "normal", "gpt2", "orthogonal", "ds_init", "fixup",
              "t_fixup", "mitchell", "sinusoid"}),
      not_negative_row("model.init_std", "0.02"),
      not_negative_row("model.branch_init_scale", "1"),
      not_negative_row("model.query_key_init_scale", "1"),
      not_negative_row("model.embedding_std", "0.7071067811865476"),
      or_word(flag("model.embedding_norm", auto_word), auto_word),
      count("model.block_layers", "2", 1, "2", "weight layers"),
      or_word(flag("model.final_norm", auto_word), auto_word),
      choice("model.positions", "\"learned\"", {"learned", "sinusoidal", "none"}),
      flag("model.causal", "true"),
      flag("model.bias", "true"),
      flag("model.tie_embeddings", "false"),
      flag("model.qk_norm", "false"),
      below_one_row("model.dropout", "0"),
      count("data.seed", "0", 0, "", ""),
      choice("data.task", "\"markov\"",
             {"markov", "copy", "reverse", "sort", "majority", "modular", "random", "quadratic", "text", "teacher",
              "clusters", "identity", "cifar10"}),
      {"data.files",
       "[]",
       {"[]", "[\"a\", \"b\"]"},
       {"3", "null", "true", "{}"},
       "write a list [\"…\", …], each the path of a file"},
      choice("data.tokenizer", "\"byte\"", {"byte", "character"}),
      or_word(count("data.vocabulary", "64", 2, "10000000", "symbols"), "null"),
      count("data.successors", "4", 1, "1000", "symbols"),
      count("data.context", "64", 1, "1000000", "tokens"),
      below_one_row("data.padding_fraction", "0"),
      count("data.inputs", "32", 1, "1000000", "features"),
      count("data.side", "16", 4, "1024", "pixels"),
      count("data.classes", "10", 2, "1000000", "classes"),
      below_one_row("data.validation_fraction", "0.1"),
      count("train.steps", "200", 1, "", steps),
      count("train.batch", "16", 1, "1000000", "sequences"),
      count("train.accumulation", "1", 1, "1000000", "micro-batches"),
      choice("train.optimizer", "\"adamw\"", {"adamw", "adam", "sgd"}),
      not_negative_row("train.learning_rate", "0.001"),
      count("train.warmup", "0", 0, "", steps),
      choice("train.decay", "\"constant\"", {"constant", "linear", "cosine", "inverse_sqrt"}),
      fraction_row("train.final_fraction", "0"),
      {"train.betas",
       "[0.9,0.98]",
       {"[0, 0.5]", "[0.9, 0.999]"},
       {"[]", "[0.9]", "[1,2,3]", "0.9", "null", "\"x\"", "{}"},
       "write two numbers [first, second], each at least 0 and below 1"},
      positive_row("train.epsilon", "1e-08"),
      below_one_row("train.momentum", "0"),
      not_negative_row("train.weight_decay", "0"),
      or_word(positive_row("train.clip_norm", "null"), "null"),
      count("train.evaluate_every", "0", 0, "", steps),
      count("train.evaluate_batches", "8", 1, "1000000", "batches"),
      choice("train.on_nonfinite", "\"stop\"", {"stop", "skip", "continue"}),
      count("record.steps_every", "1", 1, "", steps),
      count("record.layers_every", "10", 1, "", steps),
      flag("record.tensors", "false"),
      {"record.quantities",
       "\"standard\"",
       {"\"none\"", "\"all\"", "[]", "[\"standard\", \"jacobian\"]", "\"stream_rms\"", "[\"all\",\"snr\"]"},
       {"\"everything\"", "[\"standard\", \"x\"]", "[3]"},
       "write none, standard, all, the name of a column of layers.csv or of an on-demand quantity"},
      count("record.spikes.window", "64", 2, "1000000", "values"),
      count("record.spikes.level_window", "9", 1, "1000000", "values"),
      positive_row("record.spikes.threshold", "6"),
      count("record.spikes.min_count", "16", 2, "1000000", "values"),
      positive_row("record.spikes.min_jump_loss", "0.1"),
      positive_row("record.spikes.min_jump_grad_norm", "0.6931471805599453"),
      count("record.spikes.rearm", "32", 1, "1000000", steps),
      count("record.spikes.max_gap", "5", 0, "1000000", steps),
      count("checkpoint.every", "0", 0, "", steps),
      count("checkpoint.keep", "2", 1, "1000000", "checkpoints"),
      {"compute.device",
       "\"cpu\"",
       {"\"cpu\"", "\"cuda\"", "\"auto\"", "\"cuda:0\"", "\"cuda:12\""},
       {"\"gpu\"", "\"cuda:\"", "\"cuda:01\"", "\"cuda:-1\"", "\"cuda:x\"", "\"CPU\"", "\"\"", "0", "null"},
       "write cpu, cuda, cuda:0, cuda:1, … or auto"},
      count("compute.threads", "1", 1, "1024", "threads"),
      choice("compute.backend", "\"auto\"", {"auto", "aten", "fused"}),
      flag("compute.recompute", "false"),
      flag("compute.flush_denormals", "false"),
  };
}

Row dtype_row() {
  Row row = choice("compute.dtype", "\"float32\"", {"float32", "float64", "bfloat16"});
  row.refused.push_back("\"float16\"");
  row.remedy += " (the same on cpu and cuda)";
  return row;
}

std::vector<Row> every_row() {
  auto rows = contract();
  rows.push_back(dtype_row());
  return rows;
}

JsonValue json(const std::string& text) {
  Faults faults;
  return read_json(text, "", faults);
}

TEST(Fields, AreTheKeysOfTheContract) {
  std::set<std::string> keys;
  for (const auto& field : fields()) EXPECT_TRUE(keys.emplace(field->key()).second) << field->key() << " stands twice";
  std::set<std::string> expected;
  for (const Row& row : every_row()) expected.insert(row.key);
  EXPECT_EQ(keys, expected);
}

TEST(Fields, HaveTheDefaultsOfTheContract) {
  Config config;
  config.name = "file";
  const Config full = resolved(config);
  for (const Row& row : every_row()) {
    EXPECT_EQ(find_field(row.key)->value(full).dump(), row.absent) << row.key;
    EXPECT_EQ(find_field(row.key)->is_default(full), row.key != "name") << row.key;
  }
}

TEST(Fields, AcceptWhatIsInRangeAndKeepIt) {
  for (const Row& row : every_row()) {
    const Field& field = *find_field(row.key);
    for (const std::string& text : row.accepted) {
      Config config;
      EXPECT_EQ(field.assign(json(text), config), "") << row.key << " = " << text;
      Config again;
      EXPECT_EQ(field.assign(json(field.value(config).dump()), again), "") << row.key << " = " << text;
      EXPECT_EQ(config, again) << row.key << " = " << text;
    }
  }
}

TEST(Fields, RefuseWhatIsNotAndSayWhatToWrite) {
  for (const Row& row : every_row()) {
    const Field& field = *find_field(row.key);
    for (const std::string& text : row.refused) {
      Config config;
      const std::string fault = field.assign(json(text), config);
      EXPECT_TRUE(fault.ends_with("; " + row.remedy)) << row.key << " = " << text << " -> " << fault;
      EXPECT_EQ(config, Config{}) << row.key << " must stay as it was";
    }
  }
}

TEST(Fields, SayWhatEachOneIs) {
  for (const auto& field : fields()) {
    EXPECT_FALSE(field->meaning().empty()) << field->key();
    EXPECT_FALSE(field->type().empty()) << field->key();
    EXPECT_EQ(field->meaning().find('\n'), std::string::npos) << field->key();
  }
}

std::string fault_of(std::string_view key, const std::string& text) {
  Config config;
  return find_field(key)->assign(json(text), config);
}

TEST(Fields, NameWhatWasFound) {
  EXPECT_EQ(fault_of("train.learning_rate", "\"1e-3\""),
            "must be a number, got a string (\"1e-3\"); write 1e-3 without quotes");
  EXPECT_EQ(fault_of("model.depth", "\"24\""),
            "must be a whole number of blocks, got a string (\"24\"); write 24 without quotes");
  EXPECT_EQ(fault_of("model.causal", "\"true\""),
            "must be true or false, got a string (\"true\"); write true without quotes");
  EXPECT_EQ(fault_of("train.warmup", "0.1"),
            "0.1 is not a whole number of optimizer steps; write a whole number of optimizer steps, at least 0");
  EXPECT_EQ(fault_of("train.steps", "true"),
            "must be a whole number of optimizer steps, got true; write a whole number of optimizer steps, at least 1");
  EXPECT_EQ(fault_of("train.clip_norm", "1e999"), "1e999 is not finite; write a number, greater than 0, or null");
  EXPECT_EQ(fault_of("model.placement", "\"deepnrom\""),
            "\"deepnrom\" is not a choice (the nearest is deepnorm); write one of none, pre, post, deepnorm, sandwich, "
            "peri, reordered, lns, sub_ln, normformer, resi_dual, b2t, admin, keel, hybrid_norm, mix_ln");
  EXPECT_EQ(fault_of("data.files", "\"a.txt\""),
            "must be a list of strings, got a string (\"a.txt\"); write [\"a.txt\"]");
  EXPECT_EQ(fault_of("train.betas", "[0.9, 1]"), "1 is out of range; write a number, at least 0 and below 1");
  EXPECT_EQ(fault_of("record.quantities", "[\"branch_cosin\"]"),
            "\"branch_cosin\" is no quantity (the nearest is branch_cosine); write none, standard, all, the name of a "
            "column of layers.csv or of an on-demand quantity");
}

TEST(Fields, CountsAreExact) {
  Config config;
  const auto assigned = [&](const std::string& text) {
    EXPECT_EQ(find_field("train.steps")->assign(json(text), config), "") << text;
    return config.train.steps;
  };
  EXPECT_EQ(assigned("1e2"), 100);
  EXPECT_EQ(assigned("1.5e1"), 15);
  EXPECT_EQ(assigned("2500e-2"), 25);
  EXPECT_EQ(assigned("9007199254740993"), 9007199254740993);
  EXPECT_EQ(assigned("9007199254740993.0"), 9007199254740993);
  EXPECT_EQ(assigned("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(assigned("9.223372036854775807e18"), 9223372036854775807);
  for (const char* text : {"1e-99999999999999999999", "1e19", "1.5", "9007199254740993.5"})
    EXPECT_NE(find_field("train.steps")->assign(json(text), config), "") << text;
}

TEST(Fields, WritingsOfOneNumberAreEqual) {
  for (const char* text : {"1e-3", "1E-3", "0.001", "1.0e-3", "0.1e-2"}) {
    Config config;
    config.train.learning_rate = 7;
    EXPECT_EQ(find_field("train.learning_rate")->assign(json(text), config), "");
    EXPECT_EQ(config.train.learning_rate, 1e-3) << text;
  }
}

TEST(Fields, GroupsComeFromThePaths) {
  const auto groups = field_groups();
  EXPECT_EQ(
      std::vector<std::string_view>(groups.begin(), groups.end()),
      (std::vector<std::string_view>{"model", "data", "train", "record", "record.spikes", "checkpoint", "compute"}));
}

}  // namespace
}  // namespace gradflow
