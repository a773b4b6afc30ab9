#include "claims/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "claims/evaluation.h"
#include "config/grid.h"
#include "config/json_reader.h"
#include "config/nearest.h"
#include "config/text.h"
#include "core/error.h"
#include "core/files.h"
#include "core/philox.h"

namespace gradflow {
namespace {

/// Reads one side of a criterion: exactly one of above, below, between and outside.
std::optional<Region> read_region(ObjectReader& object) {
  constexpr std::string_view remedy = R"(write "above": x, "below": x, "between": [a, b] or "outside": [a, b])";
  std::optional<Region> region;
  const auto take = [&](const JsonValue& at, std::string_view key, const Region& found) {
    if (region) object.refuse(at, key, "is a second bound; keep one");
    region = found;
  };
  const auto one = [&](std::string_view key, Region (*make)(double)) {
    const JsonValue* value = object.find(key);
    if (value == nullptr) return;
    if (value->kind == JsonValue::Kind::number)
      take(*value, key, make(value->number));
    else
      object.refuse(*value, key, fmt::format("must be a number, got {}; {}", described(*value), remedy));
  };
  const auto two = [&](std::string_view key, Region (*make)(double, double)) {
    const JsonValue* value = object.find(key);
    if (value == nullptr) return;
    if (value->kind == JsonValue::Kind::array && value->elements.size() == 2 &&
        value->elements[0].kind == JsonValue::Kind::number && value->elements[1].kind == JsonValue::Kind::number &&
        value->elements[0].number <= value->elements[1].number)
      take(*value, key, make(value->elements[0].number, value->elements[1].number));
    else
      object.refuse(*value, key,
                    fmt::format("must be two numbers, the smaller first, got {}; {}", described(*value), remedy));
  };
  one("above", Region::above);
  one("below", Region::below);
  two("between", Region::between);
  two("outside", Region::outside);
  if (!region && object.value().kind == JsonValue::Kind::object && object.value().elements.empty())
    object.refuse(fmt::format("has no bound; {}", remedy));
  return region;
}

/// One pass over a claim file.
class ClaimReader {
 public:
  ClaimReader(const std::string& path, ClaimLength length) : length_(length) {
    claim_.path = path;
    claim_.length = length;
    claim_.id = std::filesystem::path(path).stem().string();
  }

  Claim read() {
    const std::string text = read_file(claim_.path);
    root_ = read_json(text, claim_.path, faults_);
    ObjectReader object(root_, "", claim_.path, faults_);
    if (root_.kind != JsonValue::Kind::object) faults_.raise();
    claim_.statement = object.require_text("statement", "write the claim in a sentence");
    claim_.source = object.require_text("source", "write the paper or article, and where in it");
    claim_.topic = object.require_text("topic", "write a word to group claims by");
    claim_.note = object.text_or("note", "");
    read_conflict(object);
    read_expected(object);
    read_seconds(object);
    read_criterion(object);
    read_averaging(object);
    const JsonValue* experiment = object.find("experiment");
    const JsonValue* check = object.find("check");
    const JsonValue* quick = object.find("quick");
    if ((experiment == nullptr) == (check == nullptr))
      object.refuse(R"(must have either "experiment" (runs) or "check" (an operator); write one of them)");
    else if (check != nullptr)
      read_check(object, *check);
    else
      read_runs(object, *experiment, quick);
    object.refuse_others();
    faults_.raise();
    claim_.checksum = fmt::format("{:016x}", fnv1a64(claim_.base.empty() ? text : text + read_file(claim_.base)));
    return std::move(claim_);
  }

 private:
  void read_conflict(ObjectReader& object) {
    const JsonValue* value = object.find("conflict");
    if (value == nullptr) return;
    ObjectReader conflict(*value, "conflict", claim_.path, faults_);
    claim_.conflict.line = value->line;
    claim_.conflict.about = conflict.require_text("about", "write what the literature disagrees about");
    claim_.conflict.quantity = conflict.require_text("quantity", "write what is measured for this position, and when");
    const JsonValue* with = conflict.require("with", "write the other positions: names of claim files beside this one");
    conflict.refuse_others();
    if (with == nullptr) return;
    if (with->kind != JsonValue::Kind::array || with->elements.empty())
      return conflict.refuse(*with, "with", fmt::format("must be a list of claims, got {}", described(*with)));
    for (const JsonValue& element : with->elements) {
      if (element.kind != JsonValue::Kind::string || element.text.empty())
        conflict.refuse(element, "with", fmt::format("must name claims, got {}", described(element)));
      else if (element.text == claim_.id)
        conflict.refuse(element, "with", "names the claim itself; leave it out");
      else
        claim_.conflict.with.push_back(element.text);
    }
  }

  void read_expected(ObjectReader& object) {
    std::vector<std::string_view> words;
    for (const std::string_view name : names_of(ClaimVerdict{})) words.push_back(name);
    const std::string word = object.require_text("expected", "write one of " + listed(words));
    const auto found = choice_named<ClaimVerdict>(word);
    if (found)
      claim_.expected = *found;
    else if (!word.empty())
      object.refuse(*object.find("expected"), "expected",
                    fmt::format("{} is no verdict; {}", in_quotes(word), did_you_mean_word(word, words)));
  }

  void read_seconds(ObjectReader& object) {
    const JsonValue* value = object.require("seconds", "write the expected cost in seconds of one core");
    if (value == nullptr) return;
    if (const std::string fault = Number{not_negative}.read(*value, claim_.seconds); !fault.empty())
      object.refuse(*value, "seconds", fault);
  }

  void read_criterion(ObjectReader& object) {
    const JsonValue* value = object.require("criterion", "write what the number must be, and what would refute it");
    if (value == nullptr) return;
    ObjectReader criterion(*value, "criterion", claim_.path, faults_);
    const std::optional<Region> reproduced = read_region(criterion);
    const JsonValue* refuted =
        criterion.require("refuted", "write which numbers would show the opposite, as \"refuted\": {\"below\": 0}");
    criterion.refuse_others();
    if (refuted == nullptr) return;
    ObjectReader opposite(*refuted, "criterion.refuted", claim_.path, faults_);
    const std::optional<Region> opposite_region = read_region(opposite);
    opposite.refuse_others();
    if (!reproduced && value->kind == JsonValue::Kind::object && !faults_.concern_keys("criterion"))
      criterion.refuse(R"(has no bound; write "above": x, "below": x, "between": [a, b] or "outside": [a, b])");
    if (!reproduced || !opposite_region) return;
    if (reproduced->overlaps(*opposite_region))
      return opposite.refuse(fmt::format("{} has numbers in common with {}; leave them apart", opposite_region->words(),
                                         reproduced->words()));
    claim_.criterion = {*reproduced, *opposite_region};
  }

  void read_averaging(ObjectReader& object) {
    const std::string word = object.text_or("mean", "arithmetic");
    if (word == "geometric")
      claim_.averaging = Averaging::geometric;
    else if (word != "arithmetic" && !word.empty())
      object.refuse(*object.find("mean"), "mean",
                    fmt::format("{} is no mean; write arithmetic or geometric", in_quotes(word)));
  }

  void read_check(ObjectReader& object, const JsonValue& value) {
    claim_.check = read_operator(value, "check", claim_.path, faults_);
    if (claim_.check->row == nullptr) return;
    if (!claim_.check->row->draws) {
      claim_.averaging = Averaging::exact;
      claim_.seeds = {1};
      if (const JsonValue* seeds = object.find("seeds"))
        object.refuse(*seeds, "seeds", fmt::format("check {} draws nothing; leave it out", claim_.check->row->name));
      return;
    }
    const JsonValue* seeds = object.require("seeds", "write for example \"seeds\": [1, 2, 3, 4, 5]");
    if (seeds == nullptr) return;
    if (seeds->kind != JsonValue::Kind::array || seeds->elements.empty())
      return object.refuse(*seeds, "seeds", fmt::format("must be a list of whole numbers, got {}", described(*seeds)));
    for (const JsonValue& element : seeds->elements) {
      std::int64_t seed = 0;
      if (const std::string fault = Count{}.read(element, seed); !fault.empty())
        object.refuse(element, "seeds", fault);
      else if (std::find(claim_.seeds.begin(), claim_.seeds.end(), seed) != claim_.seeds.end())
        object.refuse(element, "seeds", fmt::format("{} stands there twice; keep one", seed));
      claim_.seeds.push_back(seed);
    }
  }

  /// The experiment with the axes that `quick` gives in the place of its own, or beside them.
  JsonValue experiment_of(ObjectReader& object, const JsonValue& full, const JsonValue* quick) {
    JsonValue experiment = full;
    if (quick == nullptr) return experiment;
    ObjectReader reader(*quick, object.path_of("quick"), claim_.path, faults_);
    const JsonValue* axes = reader.require("axes", "write the axes that are shorter, as in \"experiment\"");
    reader.refuse_others();
    if (axes == nullptr || length_ == ClaimLength::full || experiment.kind != JsonValue::Kind::object)
      return experiment;
    auto found = std::find(experiment.names.begin(), experiment.names.end(), "axes");
    if (found == experiment.names.end()) {
      experiment.names.emplace_back("axes");
      experiment.elements.push_back(*axes);
      return experiment;
    }
    JsonValue& own = experiment.elements[static_cast<std::size_t>(found - experiment.names.begin())];
    for (std::size_t i = 0; i < axes->names.size(); ++i) {
      const auto same = std::find(own.names.begin(), own.names.end(), axes->names[i]);
      if (same == own.names.end()) {
        own.names.push_back(axes->names[i]);
        own.elements.push_back(axes->elements[i]);
      } else {
        own.elements[static_cast<std::size_t>(same - own.names.begin())] = axes->elements[i];
      }
    }
    return experiment;
  }

  void read_runs(ObjectReader& object, const JsonValue& experiment, const JsonValue* quick) {
    const JsonValue* statistic = object.require("statistic", "write which number is taken of the runs");
    if (statistic != nullptr) claim_.statistic = read_statistic(*statistic, "statistic", claim_.path, faults_);
    const JsonValue wanted = experiment_of(object, experiment, quick);
    std::optional<Grid> grid;
    if (!attempt([&] { grid.emplace(wanted, claim_.path); })) return;
    for (std::size_t cell = 0; cell < grid->size() && !faults_.full(); ++cell)
      attempt([&] { claim_.cells.push_back(grid->config(cell)); });
    if (claim_.cells.size() < grid->size()) return;
    claim_.base = grid->base_file();
    describe_axes(*grid);
    claim_.seeds = seeds_of(claim_.cells);
    if (claim_.statistic && !faults_.concern_keys("statistic"))
      check_statistic(*claim_.statistic, claim_.cells, claim_.path, faults_);
  }

  void describe_axes(const Grid& grid) {
    const auto keys = grid.keys();
    for (std::size_t key = 0; key < keys.size(); ++key) {
      std::vector<std::string> values;
      for (std::size_t cell = 0; cell < grid.size(); ++cell) {
        std::string value = option_text(grid.settings(cell)[key].value);
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
      }
      const std::vector<std::string_view> words(values.begin(), values.end());
      claim_.axes.emplace_back(keys[key], listed(words));
    }
  }

  /// Does something whose faults come with their places; a fault of many cells is named once.
  template <class Step>
  bool attempt(Step step) {
    try {
      step();
      return true;
    } catch (const Error& error) {
      for (const std::string& line : error.lines())
        if (std::find(told_.begin(), told_.end(), line) == told_.end()) {
          told_.push_back(line);
          faults_.add({"", static_cast<std::int64_t>(told_.size())}, "", line);
        }
      return false;
    }
  }

  Claim claim_;
  ClaimLength length_;
  JsonValue root_;
  Faults faults_;
  std::vector<std::string> told_;
};

}  // namespace

Claim load_claim(const std::string& path, ClaimLength length) { return ClaimReader(path, length).read(); }

std::vector<std::string> claim_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json" && entry.is_regular_file(error)) files.push_back(entry.path().string());
  if (files.empty())
    throw Error(fmt::format("{}: holds no claim files; start in the folder of the project, or name another with --from",
                            shown_path(folder)));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> claim_files_named(std::span<const std::string> ids, const std::string& folder) {
  std::map<std::string, std::string, std::less<>> known;
  std::vector<std::string> result, faults;
  std::vector<std::string_view> names;
  const bool by_path = std::all_of(ids.begin(), ids.end(), [](const std::string& id) { return id.ends_with(".json"); });
  if (!by_path)
    for (const std::string& file : claim_files(folder)) known[std::filesystem::path(file).stem().string()] = file;
  for (const auto& [name, file] : known) names.push_back(name);
  for (const std::string& id : ids) {
    const auto found = known.find(id);
    if (id.ends_with(".json"))
      result.push_back(id);
    else if (found != known.end())
      result.push_back(found->second);
    else
      faults.push_back(fmt::format("no claim of {} is called {}; {}", shown_path(folder), in_quotes(id),
                                   did_you_mean_word(id, names)));
  }
  if (!faults.empty()) throw Error(std::move(faults));
  return result;
}

}  // namespace gradflow
