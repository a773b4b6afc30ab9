#include "analysis/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "config/fields.h"
#include "config/text.h"
#include "core/seed_mean.h"

namespace gradflow {
namespace {

bool makes_a_difference(std::string_view key) {
  return key != "name" && key != "seed" && key != "compute.threads" && !key.starts_with("checkpoint.");
}

Json value_of(const RecordedRun& run, const Field& field) {
  if (field.key() == "data.files")
    if (const std::string hash = run.files_hash(); !hash.empty()) return hash;
  return field.value(run.config);
}

bool differs(const std::vector<RecordedRun>& runs, const Field& field) {
  const Json first = value_of(runs.front(), field);
  return std::any_of(runs.begin() + 1, runs.end(),
                     [&](const RecordedRun& run) { return value_of(run, field) != first; });
}

/// Whether every run has what follows from its other keys.
bool only_follows(const std::vector<RecordedRun>& runs, const Field& field) {
  return !field.default_words().empty() &&
         std::all_of(runs.begin(), runs.end(), [&](const RecordedRun& run) { return field.is_default(run.config); });
}

/// Where a value stands among those of its key: first what is no number ("auto", null), words as the schema lists them.
struct Rank {
  int kind = 0;
  double number = 0;
  std::string text;
  auto key() const { return std::tie(kind, number, text); }
};

class Ranking {
 public:
  explicit Ranking(const Field& field) {
    const Json schema = field.schema();
    if (const auto words = schema.find("enum"); words != schema.end())
      for (const Json& word : *words) words_.push_back(word.get<std::string>());
  }

  Rank operator()(const Json& value) const {
    if (value.is_number()) return {1, value.get<double>(), ""};
    if (!value.is_string()) return {0, 0, value.dump()};
    const auto text = value.get<std::string>();
    const auto place = std::find(words_.begin(), words_.end(), text);
    return {words_.empty() ? 0 : 2, static_cast<double>(place - words_.begin()), text};
  }

 private:
  std::vector<std::string> words_;
};

std::vector<std::string> labels_of(const std::vector<const Field*>& keys) {
  std::vector<std::string> labels;
  for (const Field* field : keys) {
    const std::string_view short_label = last_component(field->key());
    // The seed and its column are called "seed" in every table.
    const bool alone = short_label != "seed" && std::count_if(keys.begin(), keys.end(), [&](const Field* other) {
                                                  return last_component(other->key()) == short_label;
                                                }) == 1;
    labels.emplace_back(alone ? short_label : field->key());
  }
  return labels;
}

std::string words_of(const RecordedRun& run, const Field& field) {
  if (field.key() != "data.files") return value_in_words(field.value(run.config));
  std::string words;
  for (const std::string& file : run.config.data.files)
    words += (words.empty() ? "" : "+") + std::filesystem::path(file).filename().string();
  return shown(words);
}

/// Files of the same name in other folders must not look alike.
void tell_files_apart(Study& study, std::size_t key) {
  std::map<std::string, std::set<std::string>> hashes;  // of each word
  const auto hash_of = [&](const StudyGroup& group) { return study.runs[group.runs.front()].files_hash(); };
  for (const StudyGroup& group : study.groups) hashes[group.words[key]].insert(hash_of(group));
  for (StudyGroup& group : study.groups)
    if (hashes[group.words[key]].size() > 1) group.words[key] += " (" + hash_of(group).substr(0, 8) + ")";
}

/// One text a run and per set of keys: equal texts, equal values.
std::string fingerprint(const RecordedRun& run, const std::vector<const Field*>& keys) {
  std::string text;
  for (const Field* field : keys)
    text += value_of(run, *field).dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  return text;
}

/// Leaves one run of each configuration and seed.
void drop_repeated(Study& study, const std::vector<const Field*>& keys) {
  std::map<std::string, std::size_t> kept;  // fingerprint and seed → place in `runs`
  std::vector<RecordedRun> runs;
  for (RecordedRun& run : study.runs) {
    const auto [place, is_new] = kept.emplace(fingerprint(run, keys) + std::to_string(run.config.seed), runs.size());
    if (is_new) {
      runs.push_back(std::move(run));
      continue;
    }
    RecordedRun& other = runs[place->second];
    if (run.finished() && !other.finished()) std::swap(run, other);
    study.repeated.push_back({run.path, "its configuration and seed are those of " + other.path});
  }
  study.runs = std::move(runs);
}

}  // namespace

std::vector<std::size_t> Study::unfinished() const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].finished()) places.push_back(i);
  return places;
}

Study make_study(std::vector<RecordedRun> runs) {
  Study study;
  study.runs = std::move(runs);
  if (study.runs.empty()) return study;

  std::vector<const Field*> differing, keys;
  for (const auto& field : fields())
    if (makes_a_difference(field->key()) && differs(study.runs, *field)) differing.push_back(field.get());
  drop_repeated(study, differing);
  for (const Field* field : differing)
    if (!only_follows(study.runs, *field)) keys.push_back(field);
  const std::vector<std::string> labels = labels_of(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) study.keys.push_back({keys[i]->key(), labels[i]});

  std::map<std::string, std::size_t> place_of;  // fingerprint → place in `groups`
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const RecordedRun& run = study.runs[i];
    study.seeds_differ = study.seeds_differ || run.config.seed != study.runs.front().config.seed;
    const auto [place, is_new] = place_of.emplace(fingerprint(run, differing), study.groups.size());
    if (is_new) {
      StudyGroup& group = study.groups.emplace_back();
      for (const Field* field : keys) {
        group.values.push_back(field->value(run.config));
        group.words.push_back(words_of(run, *field));
      }
    }
    study.groups[place->second].runs.push_back(i);
  }

  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i]->key() == "data.files") tell_files_apart(study, i);

  std::vector<Ranking> rankings;
  for (const Field* field : keys) rankings.emplace_back(*field);
  const auto before = [&](const StudyGroup& a, const StudyGroup& b) {
    for (std::size_t i = 0; i < rankings.size(); ++i) {
      const Rank left = rankings[i](a.values[i]), right = rankings[i](b.values[i]);
      if (left.key() != right.key()) return left.key() < right.key();
    }
    return false;
  };
  std::stable_sort(study.groups.begin(), study.groups.end(), before);
  for (StudyGroup& group : study.groups)
    std::stable_sort(group.runs.begin(), group.runs.end(), [&](std::size_t a, std::size_t b) {
      return study.runs[a].config.seed < study.runs[b].config.seed;
    });
  return study;
}

std::vector<std::size_t> value_ranks(const Study& study, std::size_t key) {
  const Ranking ranking(*find_field(study.keys[key].key));
  std::vector<Rank> ranks;
  for (const StudyGroup& group : study.groups) ranks.push_back(ranking(group.values[key]));
  const auto before = [](const Rank& a, const Rank& b) { return a.key() < b.key(); };
  std::vector<Rank> ordered = ranks;
  std::sort(ordered.begin(), ordered.end(), before);
  std::vector<std::size_t> places;
  for (const Rank& rank : ranks)
    places.push_back(
        static_cast<std::size_t>(std::lower_bound(ordered.begin(), ordered.end(), rank, before) - ordered.begin()));
  return places;
}

/// Two seeds say next to nothing.
constexpr std::size_t fewest_for_interval = 3;

OverSeeds over_seeds(std::span<const std::optional<double>> values) {
  std::vector<double> present;
  for (const std::optional<double>& value : values)
    if (value) present.push_back(*value);
  const SeedMean over = mean_over_seeds(present, fewest_for_interval);
  return {static_cast<std::int64_t>(present.size()), over.mean, over.interval};
}

OverSeeds geometric_over_seeds(std::span<const std::optional<double>> values) {
  std::vector<double> present;
  for (const std::optional<double>& value : values)
    if (value) present.push_back(*value);
  const SeedMean over = geometric_mean_over_seeds(present, fewest_for_interval);
  return {over.mean ? static_cast<std::int64_t>(present.size()) : 0, over.mean, over.interval};
}

}  // namespace gradflow
