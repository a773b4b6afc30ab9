#include "train/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/profile.h"
#include "core/number_row.h"
#include "core/numbers.h"
#include "output/text_table.h"

namespace gradflow {
namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

/// A quantity along the blocks 1…N at one step.
struct BlockProfile {
  std::vector<double> values;
  Flow flow;

  std::size_t smallest() const {
    return static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
  }
  std::size_t largest() const {
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  }
};

/// What `get` finds in the last row of each block (the stream as it leaves the block); absent when a block lacks it.
template <class Get>
std::optional<BlockProfile> leaving_blocks(const std::vector<LayerRow>& rows, std::int64_t depth, Flow flow, Get get) {
  BlockProfile profile{std::vector<double>(static_cast<std::size_t>(depth), 0), flow};
  std::vector<bool> found(static_cast<std::size_t>(depth));
  for (const LayerRow& row : rows) {
    const std::optional<double> value = get(row);
    if (row.layer < 1 || row.layer > depth || !value) continue;
    profile.values[static_cast<std::size_t>(row.layer - 1)] = *value;
    found[static_cast<std::size_t>(row.layer - 1)] = true;
  }
  if (!std::all_of(found.begin(), found.end(), [](bool f) { return f; })) return std::nullopt;
  return profile;
}

std::optional<BlockProfile> stream_variance(const std::vector<LayerRow>& rows, std::int64_t depth) {
  return leaving_blocks(rows, depth, Flow::activation, [](const LayerRow& row) { return row.stream.stream_variance; });
}

Json profile_json(const BlockProfile& profile) {
  const ProfileFit fit = fit_profile(profile.values, profile.flow);
  const auto slope = [](const std::optional<LineFit>& line) {
    return number(line ? std::optional(line->slope) : std::nullopt);
  };
  const auto place = [&](std::size_t block) {
    return Json{{"block", block + 1}, {"value", number(profile.values[block])}};
  };
  return {{"first", number(profile.values.front())},
          {"last", number(profile.values.back())},
          {"ratio", number(fit.ratio)},
          {"smallest", place(profile.smallest())},
          {"largest", place(profile.largest())},
          {"rate_per_block", slope(fit.exponential)},
          {"exponent", slope(fit.power)},
          {"not_finite_blocks", fit.not_finite},
          {"form", fit.better() ? Json(name_of(*fit.better())) : Json()}};
}

Json profiles_json(const std::vector<LayerRow>& rows, std::int64_t depth) {
  Json json = {{"grad_norm", profile_json({block_grad_norms(rows, depth), Flow::gradient})}};
  const auto add = [&](const char* name, const std::optional<BlockProfile>& profile) {
    if (profile) json[name] = profile_json(*profile);
  };
  add("stream_grad_norm",
      leaving_blocks(rows, depth, Flow::gradient, [](const LayerRow& row) { return row.stream.stream_grad_norm; }));
  add("stream_variance", stream_variance(rows, depth));
  return json;
}

std::string_view name_of(NonfiniteFinding::Kind kind) {
  switch (kind) {
    case NonfiniteFinding::Kind::gradient: return "gradient";
    case NonfiniteFinding::Kind::loss: return "loss";
    case NonfiniteFinding::Kind::update: return "update";
  }
  return "";
}

std::string text_of(double value) { return significant(value, 4); }

}  // namespace

void RunAccount::step_done(const StepResult& result) {
  tokens = result.tokens;
  steps = result.step;
  if (!first_loss) first_loss = result.loss;
  if (last_losses.size() == final_losses) last_losses.erase(last_losses.begin());
  last_losses.push_back(result.loss);
  if (std::isfinite(result.loss) && (!best || result.loss < best->loss)) best = Best{result.loss, result.step};
  if (result.eval_loss) eval_loss = result.eval_loss;
  if (result.clip_factor < 1) ++clipped_steps;
  if (result.skipped) ++skipped_steps;
  tensors_without_gradient = std::count(result.gradients.squares.begin(), result.gradients.squares.end(), 0.0);
}

template <class NumberRow, class Account>
void RunAccount::numbers_of(NumberRow& row, Account& account) {
  row(account.tokens);
  row(account.steps);
  row(account.first_loss);
  row(account.last_losses);
  row.optional(account.best, [](auto& inner, auto& best) {
    inner(best.loss);
    inner(best.step);
  });
  row(account.eval_loss);
  row(account.clipped_steps);
  row(account.skipped_steps);
  row(account.tensors_without_gradient);
}

void RunAccount::save(SavedState& state) {
  NumberRowWriter row;
  numbers_of(row, *this);
  state.rows["account"] = row.take();
}

void RunAccount::restore(const SavedState& state) {
  NumberRowReader row(state.row("account"));
  numbers_of(row, *this);
  row.finish();
}

std::optional<Verdict> RunSummary::verdict() const {
  return verdict_of(account.last_losses, facts.unigram_entropy, stopped_at.has_value());
}

std::string RunSummary::stop_reason() const {
  if (!stopped_at) return {};
  const std::string place = fmt::format("layer {} ({})", stopped_at->layer, stopped_at->sublayer);
  const std::string_view activations = stopped_at->activation_finite ? "finite" : "not finite either";
  const std::string step = fmt::format("non-finite value at step {}: ", account.steps);
  switch (stopped_at->kind) {
    case NonfiniteFinding::Kind::loss: return step + "the loss; every gradient is finite";
    case NonfiniteFinding::Kind::update:
      return step + fmt::format("the update would overflow {}, {}; it was not made", stopped_at->tensor, place);
    case NonfiniteFinding::Kind::gradient:
      return step +
             fmt::format("gradient of {}, {}, whose activations were {}", stopped_at->tensor, place, activations);
  }
  return step;
}

Json RunSummary::json() const {
  const std::optional<Verdict> word = verdict();
  std::int64_t decayed = 0;
  for (const ParameterStore::Entry& entry : stack.store().entries()) decayed += entry.decays ? entry.size : 0;
  const std::int64_t parameters = stack.layout().parameter_count();

  Json json = {
      {"verdict", word ? Json(name_of(*word)) : Json()},
      {"steps", account.steps},
      {"tokens", account.tokens},
      {"first_loss", number(account.first_loss)},
      {"final_loss", number(final_loss(account.last_losses))},
      {"best_loss", number(account.best ? std::optional(account.best->loss) : std::nullopt)},
      {"best_step", account.best ? Json(account.best->step) : Json()},
      {"eval_loss", number(account.eval_loss)},
      {"vocabulary", facts.vocabulary},
      {"log_vocabulary", number(std::log(static_cast<double>(facts.vocabulary)))},
      {"unigram_entropy", number(facts.unigram_entropy)},
      {"entropy_rate", number(facts.entropy_rate)},
      {"spikes",
       {{"loss", recorder.spike_rows(SpikeSeries::loss)}, {"grad_norm", recorder.spike_rows(SpikeSeries::grad_norm)}}},
      {"clipped_steps", account.clipped_steps},
      {"skipped_steps", account.skipped_steps},
      {"parameters",
       {{"count", parameters},
        {"decayed", decayed},
        {"not_decayed", parameters - decayed},
        {"tensors", stack.store().entries().size()},
        {"tensors_without_gradient", account.tensors_without_gradient}}},
  };
  if (facts.text_tokens)
    json["text"] = {{"bytes", facts.text_bytes.value_or(0)},
                    {"tokens", *facts.text_tokens},
                    {"distinct_tokens", facts.distinct_tokens.value_or(0)}};
  if (stopped_at)
    json["nonfinite"] = {{"step", account.steps},
                         {"kind", name_of(stopped_at->kind)},
                         {"tensor", stopped_at->tensor},
                         {"layer", stopped_at->layer},
                         {"sublayer", stopped_at->sublayer},
                         {"activation_finite", stopped_at->activation_finite}};
  json["profiles"] = {{"first_step", profiles_json(recorder.first_rows(), config.model.depth)},
                      {"last_step", profiles_json(recorder.last_rows(), config.model.depth)}};
  json["recording"] = {{"seconds", recorder.recording_seconds()},
                       {"share", recorder.recording_seconds() / recorder.seconds()}};
  return json;
}

std::string RunSummary::text() const {
  const std::int64_t depth = config.model.depth;
  const std::optional<Verdict> word = verdict();

  TextTable facts_table(2);
  std::string loss = fmt::format("{} first, {} last", text_of(account.first_loss.value_or(NAN)),
                                 text_of(final_loss(account.last_losses).value_or(NAN)));
  if (account.steps > 1) loss += fmt::format(" (mean of {})", account.last_losses.size());
  facts_table.add({"verdict", word ? std::string(name_of(*word)) : "–"});
  facts_table.add({"loss", loss});
  if (account.eval_loss) facts_table.add({"validation loss", text_of(*account.eval_loss)});
  std::string marks;
  const auto mark = [&](const char* name, const std::optional<double>& value) {
    if (value) marks += fmt::format("{}{} {}", marks.empty() ? "" : ", ", name, text_of(*value));
  };
  mark("unigram entropy", facts.unigram_entropy);
  mark("entropy rate", facts.entropy_rate);
  if (facts.vocabulary > 0)
    mark(fmt::format("ln {}", facts.vocabulary).c_str(), std::log(static_cast<double>(facts.vocabulary)));
  if (!marks.empty()) facts_table.add({"to compare", marks});
  facts_table.add(
      {"spikes", fmt::format("{} in the loss, {} in the gradient norm", recorder.spike_rows(SpikeSeries::loss),
                             recorder.spike_rows(SpikeSeries::grad_norm))});
  if (config.train.clip_norm)
    facts_table.add({"clipped", fmt::format("{} of {} steps", account.clipped_steps, account.steps)});
  facts_table.add({"recording", fmt::format("{:.1f} % of {} s", 100 * recorder.recording_seconds() / recorder.seconds(),
                                            significant(recorder.seconds(), 3))});

  TextTable profile({"over depth", "first step", "last step"});
  const auto row = [&](const std::string& name, auto value) {
    profile.add({name, value(recorder.first_rows()), value(recorder.last_rows())});
  };
  const auto gradient = [&](auto pick) {
    return [&, pick](const std::vector<LayerRow>& rows) {
      const BlockProfile blocks{block_grad_norms(rows, depth), Flow::gradient};
      return std::string(pick(blocks));
    };
  };
  row("gradient norm, block 1", gradient([](const BlockProfile& p) { return text_of(p.values.front()); }));
  row(fmt::format("gradient norm, block {}", depth),
      gradient([](const BlockProfile& p) { return text_of(p.values.back()); }));
  row("ratio first/last", gradient([](const BlockProfile& p) { return text_of(p.values.front() / p.values.back()); }));
  row("smallest (block)", gradient([](const BlockProfile& p) {
        return fmt::format("{} ({})", text_of(p.values[p.smallest()]), p.smallest() + 1);
      }));
  row("largest (block)", gradient([](const BlockProfile& p) {
        return fmt::format("{} ({})", text_of(p.values[p.largest()]), p.largest() + 1);
      }));
  const auto variance = [&](auto pick) {
    return [&, pick](const std::vector<LayerRow>& rows) {
      const std::optional<BlockProfile> blocks = stream_variance(rows, depth);
      return blocks ? text_of(pick(*blocks)) : std::string("–");
    };
  };
  row("stream variance, block 1", variance([](const BlockProfile& p) { return p.values.front(); }));
  row(fmt::format("stream variance, block {}", depth), variance([](const BlockProfile& p) { return p.values.back(); }));

  return facts_table.text() + "\n" + profile.text();
}

}  // namespace gradflow
