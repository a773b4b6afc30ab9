#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "config/derived.h"
#include "config/resolved.h"
#include "core/error.h"
#include "core/files.h"
#include "core/numbers.h"
#include "output/run_folder.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// To be raised whenever this version can no longer go on from what the last one wrote, or would do so wrongly: also
/// with a number more in an observer's row.
constexpr std::string_view format_version = "gradflow 2";
constexpr std::string_view other_form_remedy =
    "; go on with the version that wrote it, or start again (remove the folder, or run --overwrite)";
constexpr std::string_view folder_name = "checkpoint", prefix = "step-", ending = ".safetensors";

/// A checkpoint that cannot be gone on from, so that the one before is tried.
struct Unfit : Error {
  using Error::Error;
};

/// One that is whole and of a form that this version does not write: another version may well go on from it.
struct OtherForm : Unfit {
  using Unfit::Unfit;
};

ElementType type_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? ElementType::float64 : ElementType::float32;
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

/// A tensor of the store under its name in the file. No view of LibTorch's: at depth 1000 there are 36,000.
struct NamedBytes {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;
  std::span<std::byte> bytes;
};

/// What the store holds, on the CPU: the buffers themselves there, copies of them elsewhere.
class StoreTensors {
 public:
  StoreTensors(ParameterStore& store, const TrainConfig& train) {
    const std::vector<at::Tensor*> flat = store.updated(moment_count(train));
    tensors_.reserve(flat.size() * store.entries().size() + store.buffers().size());
    for (std::size_t b = 0; b < flat.size(); ++b) {
      constexpr std::string_view prefixes[] = {"", "first_moment.", "second_moment."};
      const at::Tensor here = flat[b]->to(at::kCPU);
      const std::size_t element = here.element_size();
      for (const ParameterStore::Entry& entry : store.entries())
        tensors_.push_back({std::string(prefixes[b]) + entry.name, type_of(here), entry.shape,
                            bytes_of(here).subspan(static_cast<std::size_t>(entry.offset) * element,
                                                   static_cast<std::size_t>(entry.size) * element)});
      copied_.emplace_back(*flat[b], here);
    }
    for (const auto& [name, buffer] : store.buffers()) {
      const at::Tensor here = buffer.to(at::kCPU);
      tensors_.push_back({name, type_of(here), here.sizes().vec(), bytes_of(here)});
      copied_.emplace_back(buffer, here);
    }
  }

  std::vector<NamedBytes>& by_name() { return tensors_; }
  /// After the tensors have been written: the store has them too.
  void hand_back() {
    for (auto& [there, here] : copied_)
      if (!there.is_cpu()) there.copy_(here);
  }

 private:
  std::vector<NamedBytes> tensors_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copied_;
};

/// In pieces: over the whole buffer, LibTorch's test would take twice its memory.
bool all_finite(const at::Tensor& values) {
  constexpr std::int64_t piece = 1 << 20;
  at::Tensor finite = at::ones({}, at::TensorOptions().dtype(at::kBool).device(values.device()));
  for (std::int64_t begin = 0; begin < values.numel(); begin += piece)
    finite.logical_and_(at::isfinite(values.narrow(0, begin, std::min(piece, values.numel() - begin))).all());
  return finite.item<bool>();
}

json files_json(const SavedState& state) {
  json files = json::object();
  for (const auto& [name, file] : state.files)
    files[name] = {{"length", file.length},
                   {"longer_run", {{"length", file.longer_run_length}, {"text", file.longer_run_text}}}};
  return files;
}

std::map<std::string, SavedFile> files_from(const json& files) {
  std::map<std::string, SavedFile> result;
  for (const auto& [name, file] : files.items())
    result[name] = {file.at("length").get<std::uint64_t>(), file.at("longer_run").at("length").get<std::uint64_t>(),
                    file.at("longer_run").at("text").get<std::string>()};
  return result;
}

/// Out of the way of those that will be written, and still there for who wants to know.
void set_aside(const std::vector<std::string>& checkpoints) {
  for (const std::string& path : checkpoints) {
    std::error_code ignored;
    fs::rename(path, path + ".rejected", ignored);
  }
}

std::int64_t whole_number(const Metadata& metadata, const char* key) {
  const auto value = parse_integer(metadata.at(key));
  if (!value || *value < 0) throw std::range_error(std::string(key) + " is no count");
  return *value;
}

}  // namespace

Checkpoints::Checkpoints(std::string run_folder, const Config& config, ParameterStore& store,
                         std::vector<Observer*> observers, Warn warn)
    : run_folder_(std::move(run_folder)),
      config_(config),
      store_(store),
      observers_(std::move(observers)),
      warn_(std::move(warn)) {}

std::string Checkpoints::path_of(std::int64_t step) const {
  return fmt::format("{}/{}/{}{}{}", run_folder_, folder_name, prefix, step, ending);
}

std::vector<std::int64_t> Checkpoints::steps() const {
  std::vector<std::int64_t> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run_folder_ + '/' + std::string(folder_name), none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(ending)) continue;
    const auto step = parse_integer(name.substr(prefix.size(), name.size() - prefix.size() - ending.size()));
    if (step && *step > 0 && path_of(*step).ends_with('/' + name)) found.push_back(*step);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

bool Checkpoints::due(std::int64_t step) const {
  const std::int64_t every = config_.checkpoint.every;
  return step == config_.train.steps || (every > 0 && step % every == 0);
}

void Checkpoints::save(const Position& position) {
  if (position.step == 0 || position.step == saved_step_) return;
  if (!all_finite(store_.values())) {
    warn_(fmt::format("no checkpoint after step {}: the weights are not finite", position.step));
    return;
  }
  write(path_of(position.step), position);
  saved_step_ = position.step;
  const std::vector<std::int64_t> there = steps();
  for (std::size_t i = static_cast<std::size_t>(config_.checkpoint.keep); i < there.size(); ++i)
    remove_file(path_of(there[i]));
}

void Checkpoints::save_again(const Position& position) {
  saved_step_ = 0;
  save(position);
}

void Checkpoints::save_stopped(const Position& position) {
  if (!all_finite(store_.values())) return;
  write(fmt::format("{}/{}/stopped-{}{}", run_folder_, folder_name, position.step, ending), position);
}

void Checkpoints::write(const std::string& path, const Position& position) {
  SavedState state;
  for (Observer* observer : observers_) observer->save(state);
  const Metadata metadata = {{"format", std::string(format_version)},
                             {"step", std::to_string(position.step)},
                             {"tokens", std::to_string(position.tokens)},
                             {"updates", std::to_string(position.updates)},
                             {"config", to_json(config_).dump(-1, ' ', false, json::error_handler_t::replace)},
                             {"files", files_json(state).dump()}};
  StoreTensors tensors(store_, config_.train);
  std::vector<TensorContent> contents;
  contents.reserve(tensors.by_name().size() + state.rows.size());
  for (NamedBytes& tensor : tensors.by_name())
    contents.push_back({std::move(tensor.name), tensor.type, std::move(tensor.shape), tensor.bytes});
  for (const auto& [name, row] : state.rows)
    contents.push_back({"state." + name,
                        ElementType::float64,
                        {static_cast<std::int64_t>(row.size())},
                        std::as_bytes(std::span(row))});
  create_folders(run_folder_ + '/' + std::string(folder_name));
  write_safetensors(path, metadata, contents);
}

std::optional<Position> Checkpoints::restore() {
  std::vector<std::string> rejected;
  std::optional<std::string> of_other_form;
  for (const std::int64_t step : steps()) {
    const std::string path = path_of(step);
    try {
      const SafetensorsFile file(path);
      const auto [position, state] = check(file);
      load(file, state);
      if (!rejected.empty()) warn_(fmt::format("going on from the checkpoint before, of step {}", step));
      set_aside(rejected);
      saved_step_ = step;
      return position;
    } catch (const OtherForm& fault) {
      warn_(fault.what());
      if (!of_other_form) of_other_form = path;
    } catch (const Unfit& fault) {
      warn_(fault.what());
    } catch (const Damaged& fault) {
      warn_(fault.what());
    }
    rejected.push_back(path);
  }
  if (of_other_form)
    throw OfOtherVersion(*of_other_form +
                         ": has another form than this version writes, and no other checkpoint is in order" +
                         std::string(other_form_remedy));
  if (!rejected.empty()) warn_("no other checkpoint is there: starting again from step 1");
  set_aside(rejected);
  return std::nullopt;
}

std::pair<Position, SavedState> Checkpoints::check(const SafetensorsFile& file) {
  const auto unfit = [&](const std::string& why) { return Unfit(file.path() + ": cannot be resumed from: " + why); };
  const auto other_form = [&](const std::string& why) { return OtherForm(unfit(why).what()); };
  Position position;
  SavedState state;
  try {
    const Metadata& metadata = file.metadata();
    if (metadata.at("format") != format_version)
      throw OfOtherVersion(file.path() + ": has the format \"" + metadata.at("format") +
                           "\" where this version has \"" + std::string(format_version) + "\"" +
                           std::string(other_form_remedy));
    position = {whole_number(metadata, "step"), whole_number(metadata, "tokens"), whole_number(metadata, "updates")};
    state.files = files_from(json::parse(metadata.at("files")));
  } catch (const json::exception&) {
    throw other_form("its metadata are not those of a checkpoint");
  } catch (const std::logic_error&) {
    throw other_form("its metadata are not those of a checkpoint");
  } catch (const std::range_error& error) {
    throw other_form(error.what());
  }
  if (position.step > config_.train.steps) throw unfit("it is of a step behind the last");
  const bool ends = position.step == config_.train.steps;
  for (const auto& [name, saved] : state.files)
    if (const std::uint64_t size = file_size(run_folder_ + '/' + name).value_or(0), had = saved.length_for(ends);
        size < had)
      throw unfit(fmt::format("{} has {} bytes and had {}", name, size, had));
  StoreTensors tensors(store_, config_.train);
  for (const NamedBytes& tensor : tensors.by_name()) {
    const TensorPlace* place = file.find(tensor.name);
    if (place == nullptr || place->type != tensor.type || place->shape != tensor.shape)
      throw other_form("it is of another model: " + tensor.name + " is missing or has another shape");
  }
  constexpr std::string_view mark = "state.";
  for (const TensorPlace& place : file.tensors()) {
    if (!place.name.starts_with(mark) || place.type != ElementType::float64) continue;
    std::vector<double>& row = state.rows[place.name.substr(mark.size())];
    row.resize((place.end - place.begin) / sizeof(double));
    file.read(place, std::as_writable_bytes(std::span(row)));
  }
  return {position, state};
}

void Checkpoints::load(const SafetensorsFile& file, const SavedState& state) {
  StoreTensors tensors(store_, config_.train);
  try {
    for (Observer* observer : observers_) observer->restore(state);
  } catch (const std::range_error& error) {
    throw OtherForm(file.path() + ": cannot be resumed from: what it remembers has another form: " + error.what());
  }
  for (Observer* observer : observers_) observer->reopen(state);
  for (const NamedBytes& tensor : tensors.by_name()) file.read(*file.find(tensor.name), tensor.bytes);
  tensors.hand_back();
}

}  // namespace gradflow
