#include "train/recorder.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/spike_state.h"
#include "config/quantities.h"
#include "core/interrupt.h"
#include "core/number_row.h"
#include "core/phases.h"

namespace gradflow {
namespace {

/// The columns that `record.quantities` asks for and that are measured while a step passes.
std::set<std::string_view> measured_columns(const RecordConfig& record) {
  std::set<std::string_view> columns = quantities_asked_for(record.quantities);
  for (const std::string_view name : on_demand_among(columns)) columns.erase(name);
  return columns;
}

std::set<Detail> details_among(const std::set<std::string_view>& columns) {
  std::set<Detail> details;
  for (const std::string_view column : columns)
    if (const std::optional<Detail> detail = choice_named<Detail>(column)) details.insert(*detail);
  return details;
}

std::vector<SubLayerName> names_of_rows(const Layout& layout) {
  std::vector<SubLayerName> names;
  for (const SegmentSpec& segment : layout.segments) names.push_back({segment.layer, segment.sublayer});
  return names;
}

/// σ_max of a matrix, a convolution taken as [out, in·9]; absent for what is no matrix.
std::optional<double> spectral_norm(const at::Tensor& parameter) {
  if (parameter.dim() < 2) return std::nullopt;
  const at::Tensor matrix = parameter.detach().flatten(1).to(at::kCPU, at::kDouble);
  if (!matrix.isfinite().all().item<bool>()) return std::numeric_limits<double>::quiet_NaN();
  return at::linalg_svdvals(matrix)[0].item<double>();
}

std::string file_name_of(const CsvFile& file) { return std::filesystem::path(file.path()).filename().string(); }

}  // namespace

/// Adds the time of a scope to the recorder's account.
class Recorder::Stopwatch {
 public:
  explicit Stopwatch(Recorder& recorder) : Stopwatch(recorder, 1) {}
  /// For what is done at every segment of a step. In deep stacks that is little enough for the clock to show in it:
  /// there every third is measured, other ones in the next step that is recorded, and counts for three.
  static Stopwatch at_segment(Recorder& recorder, std::size_t segment) {
    constexpr std::size_t few = 32, stride = 3;
    if (recorder.stack_.layout().segments.size() <= few) return Stopwatch(recorder, 1);
    return Stopwatch(recorder, (segment + recorder.recorded_steps_) % stride == 0 ? stride : 0);
  }
  ~Stopwatch() {
    if (weight_ != 0)
      recorder_.recording_seconds_ += weight_ * std::chrono::duration<double>(Clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Stopwatch(Recorder& recorder, double weight) : recorder_(recorder), weight_(weight) {
    if (weight_ != 0) start_ = Clock::now();
  }

  PhaseScope phase_{Phase::recording};
  Recorder& recorder_;
  double weight_;
  Clock::time_point start_;
};

Recorder::Recorder(const Config& config, Stack& stack, at::Device device, std::string folder)
    : config_(config),
      stack_(stack),
      meter_(stack.layout(), device),
      columns_(measured_columns(config.record)),
      watch_(config.record.spikes, names_of_rows(stack.layout())),
      folder_(std::move(folder)),
      start_(Clock::now()) {
  for (std::size_t c = 0; c < layers_columns().size(); ++c) {
    const std::string_view name = layers_columns()[c].name;
    if (name == "nonfinite") nonfinite_cell_ = c;
    if (const auto column = measured_column(name); column && columns_.contains(name))
      measured_cells_.emplace_back(c, *column);
  }
  if (std::set<Detail> details = details_among(columns_); !details.empty())
    details_.emplace(config, stack.layout(), std::move(details));
}

std::vector<CsvFile*> Recorder::Files::all() {
  std::vector<CsvFile*> files = {&steps, &layers, &spikes, &timing};
  if (tensors) files.push_back(&*tensors);
  return files;
}

Recorder::Files Recorder::opened(const SavedState* from) const {
  const auto open = [&](const std::string& name, std::span<const Column> columns) {
    const std::string path = folder_ + '/' + name;
    if (from == nullptr) return CsvFile(path, columns);
    const SavedFile& saved = from->file(name);
    const bool ends = last_step_ == config_.train.steps;
    CsvFile file(path, columns, saved.length_for(ends));
    if (!ends) file.append(saved.longer_run_text);
    return file;
  };
  Files files{open("steps.csv", steps_columns()), open("layers.csv", layers_columns()),
              open("spikes.csv", spikes_columns()), open("timing.csv", timing_columns()), std::nullopt};
  if (config_.record.tensors) files.tensors.emplace(open("tensors.csv", tensors_columns()));
  return files;
}

void Recorder::begin() { files_.emplace(opened(nullptr)); }

template <class NumberRow, class Self>
void Recorder::numbers_of(NumberRow& row, Self& self) {
  row(self.last_step_);
  row(self.seconds_before_);
  row(self.recording_seconds_);
  row(self.timed_at_);
  row(self.timed_recording_);
  row(self.timed_tokens_);
  for (auto& count : self.spike_rows_) row(count);
  for (auto* rows : {&self.first_rows_, &self.last_rows_})
    row.list(*rows, [](auto& inner, auto& one) { gradflow::numbers_of(inner, one); });
  row.list(self.owed_tensors_, [](auto& inner, auto& one) { parameter_numbers_of(inner, one); });
  row(self.owed_by_any_run_);
}

void Recorder::save(SavedState& state) {
  const Stopwatch stopwatch(*this);
  for (CsvFile* file : files_->all()) {
    file->sync();
    const auto longer = longer_run_files_.find(file);
    state.files[file_name_of(*file)] =
        longer == longer_run_files_.end() ? SavedFile{file->length(), file->length()} : longer->second;
  }
  const double before = std::exchange(seconds_before_, seconds());
  NumberRowWriter row;
  numbers_of(row, *this);
  seconds_before_ = before;
  state.rows["recorder"] = row.take();
  state.rows["spikes"] = packed(watch_.state());
}

void Recorder::restore(const SavedState& state) {
  for (const char* file : {"steps.csv", "layers.csv", "spikes.csv", "timing.csv"}) state.file(file);
  if (config_.record.tensors) state.file("tensors.csv");
  NumberRowReader row(state.row("recorder"));
  numbers_of(row, *this);
  row.finish();
  const Layout& layout = stack_.layout();
  watch_.restore(unpacked_spikes(state.row("spikes"), layout.segments.size()));
  for (auto* rows : {&first_rows_, &last_rows_}) {
    if (!rows->empty() && rows->size() != layout.segments.size()) throw std::range_error("rows of another stack");
    for (std::size_t s = 0; s < rows->size(); ++s) {
      (*rows)[s].layer = layout.segments[s].layer;
      (*rows)[s].sublayer = layout.segments[s].sublayer;
    }
  }
  const std::size_t tensors = config_.record.tensors ? stack_.store().entries().size() : 0;
  if (!owed_tensors_.empty() && owed_tensors_.size() != tensors) throw std::range_error("rows of another stack");
}

void Recorder::reopen(const SavedState& state) {
  files_.emplace(opened(&state));
  if (last_step_ != config_.train.steps) return;
  // A checkpoint written once more of the last step must still know what a longer run would have had of it.
  for (CsvFile* file : files_->all()) longer_run_files_[file] = state.file(file_name_of(*file));
}

void Recorder::go_on() {
  if (owed_tensors_.empty()) return;
  const Stopwatch stopwatch(*this);
  // A run with more steps may not want what was only due because its last step was the last.
  if (owed_by_any_run_ || last_step_ == config_.train.steps) write_tensors(owed_tensors_);
  owed_tensors_.clear();
  if (const auto longer = longer_run_files_.find(&*files_->tensors); longer != longer_run_files_.end()) {
    longer->second.length = files_->tensors->length();
    if (owed_by_any_run_) longer->second.longer_run_length = longer->second.length;
  }
}

double Recorder::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(Clock::now() - start_).count();
}

Watcher* Recorder::watcher_for(std::int64_t step) {
  streams_due_ = !columns_.empty() && is_due(step, config_.record.layers_every, config_.train.steps);
  if (!streams_due_) return nullptr;
  ++recorded_steps_;
  meter_.reset();
  if (details_) details_->reset();
  return this;
}

void Recorder::evaluation_starts() {
  const Stopwatch stopwatch(*this);
  flush();  // what is written must not wait until it ends
}

void Recorder::forward_done(std::size_t segment, const Stream& input, const Stream& output, const Inside& inside,
                            const Batch& batch) {
  const Stopwatch stopwatch = Stopwatch::at_segment(*this, segment);
  meter_.forward_done(segment, input, output, inside, batch);
  if (details_) details_->forward_done(segment, input, output, inside, batch);
}

void Recorder::gradient_arrived(std::size_t segment, const Stream& gradient) {
  const Stopwatch stopwatch = Stopwatch::at_segment(*this, segment);
  meter_.gradient_arrived(segment, gradient);
  if (details_) details_->gradient_arrived(segment, gradient);
}

void Recorder::skip_gradient_found(std::size_t segment, const at::Tensor& gradient) {
  const Stopwatch stopwatch = Stopwatch::at_segment(*this, segment);
  details_->skip_gradient_found(segment, gradient);
}

void Recorder::gather(Readout& readout) {
  if (!streams_due_) return;
  const Stopwatch stopwatch(*this);
  meter_.gather(readout);
  if (details_) details_->gather(readout);
}

void Recorder::step_done(const StepResult& result) {
  const RecordConfig& record = config_.record;
  last_step_ = result.step;
  std::map<const CsvFile*, std::uint64_t> lengths;
  if (result.last)
    for (const CsvFile* file : files_->all()) lengths[file] = file->length();
  const bool always = result.last || result.finding.has_value();
  const bool step_due = always || is_due(result.step, record.steps_every, config_.train.steps);
  {
    const Stopwatch stopwatch(*this);
    std::vector<LayerRow> rows = streams_due_ ? layer_rows(stack_, result, meter_.statistics(),
                                                           details_ ? details_->details() : std::vector<Details>())
                                              : layer_rows(stack_, result, {});

    std::vector<double> grad_norms, update_ratios;
    for (const LayerRow& row : rows) {
      grad_norms.push_back(row.parameters.grad_norm.value_or(0));
      update_ratios.push_back(row.parameters.update_ratio.value_or(0));
    }
    spikes_ = watch_.add({result.step, result.loss, result.grad_norm, grad_norms, update_ratios});
    write_spikes(spikes_.ended);

    if (step_due || result.eval_loss) files_->steps.write(step_cells(result));
    if (always || is_due(result.step, record.layers_every, config_.train.steps)) {
      write_layers(result.step, rows);
      if (files_->tensors) try_tensors(result);
      if (first_rows_.empty()) first_rows_ = rows;
      last_rows_ = std::move(rows);
    }
  }
  if (step_due) write_timing(result);
  if (result.last) note_longer_run(result, lengths);
  flush_when_due();
}

void Recorder::note_longer_run(const StepResult& result,
                               const std::map<const CsvFile*, std::uint64_t>& lengths_before) {
  const auto note = [&](const CsvFile& file, bool kept) {
    longer_run_files_[&file] = {file.length(), kept ? file.length() : lengths_before.at(&file), {}};
  };
  const std::int64_t evaluate_every = config_.train.evaluate_every;
  const bool evaluated = evaluate_every > 0 && is_due(result.step, evaluate_every, no_last_step);
  const bool step_row = evaluated || result.finding || is_due(result.step, config_.record.steps_every, no_last_step);
  note(files_->steps, step_row && result.eval_loss.has_value() == evaluated);
  if (step_row && !evaluated && result.eval_loss) {
    StepResult without = result;
    without.eval_loss.reset();
    longer_run_files_[&files_->steps].longer_run_text = files_->steps.line_of(step_cells(without));
  }
  note(files_->layers, layers_due_in_any_run(result));
  if (files_->tensors) note(*files_->tensors, layers_due_in_any_run(result));
}

bool Recorder::layers_due_in_any_run(const StepResult& result) const {
  return result.finding || is_due(result.step, config_.record.layers_every, no_last_step);
}

void Recorder::flush_when_due() {
  // Whoever follows the files sees whole lines within a second.
  if (seconds() - flushed_at_ < 0.5) return;
  const Stopwatch stopwatch(*this);
  flush();
  flushed_at_ = seconds();
}

void Recorder::flush() {
  for (CsvFile* file : files_->all()) file->flush();
}

std::vector<Cell> Recorder::step_cells(const StepResult& result) const {
  const std::optional<double> update_norm =
      result.update ? std::optional(root_of_sum(result.update->update_squares)) : std::nullopt;
  return {result.step,
          result.tokens,
          result.learning_rate,
          result.loss,
          result.grad_norm,
          result.clip_factor,
          root_of_sum(result.weight_squares),
          cell(update_norm),
          cell(result.eval_loss),
          std::int64_t{spikes_.loss},
          std::int64_t{spikes_.grad_norm},
          result.nonfinite};
}

void Recorder::write_layers(std::int64_t step, const std::vector<LayerRow>& rows) {
  std::vector<Cell> cells(layers_columns().size());
  for (const LayerRow& row : rows) {
    cells[nonfinite_cell_] = {};
    const ParameterNumbers& p = row.parameters;
    const Cell front[] = {step,
                          row.layer,
                          row.sublayer,
                          cell(p.grad_norm),
                          cell(p.weight_norm),
                          cell(p.update_norm),
                          cell(p.update_ratio)};
    std::copy(std::begin(front), std::end(front), cells.begin());
    for (const auto& [c, column] : measured_cells_) cells[c] = cell(column.of(row));
    if (p.nonfinite) cells[nonfinite_cell_] = *p.nonfinite;
    files_->layers.write(cells);
  }
}

void Recorder::try_tensors(const StepResult& result) {
  std::vector<ParameterNumbers> rows = tensor_numbers(result);
  try {
    write_tensors(rows);
  } catch (const Interrupted&) {
    owed_tensors_ = std::move(rows);
    owed_by_any_run_ = layers_due_in_any_run(result);
  }
}

void Recorder::write_tensors(const std::vector<ParameterNumbers>& rows) {
  const std::vector<ParameterStore::Entry>& entries = stack_.store().entries();
  std::vector<std::optional<double>> spectral_norms;  // all of them before the first row
  for (const ParameterStore::Entry& entry : entries) {
    give_up_if_overdue();
    spectral_norms.push_back(spectral_norm(stack_.store().parameter(entry.name)));
  }
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const Cell row[] = {last_step_,
                        entries[e].name,
                        cell(rows[e].grad_norm),
                        cell(rows[e].weight_norm),
                        cell(rows[e].update_norm),
                        cell(rows[e].update_ratio),
                        cell(spectral_norms[e])};
    files_->tensors->write(row);
  }
}

void Recorder::write_timing(const StepResult& result) {
  const double now = seconds(), elapsed = now - timed_at_;
  const Cell row[] = {result.step, now, static_cast<double>(result.tokens - timed_tokens_) / elapsed,
                      (recording_seconds_ - timed_recording_) / elapsed};
  files_->timing.write(row);
  timed_at_ = now;
  timed_recording_ = recording_seconds_;
  timed_tokens_ = result.tokens;
}

void Recorder::write_spikes(const std::vector<SpikeRow>& rows) {
  for (const SpikeRow& row : rows) {
    files_->spikes.write(cells(row));
    ++spike_rows_[static_cast<std::size_t>(row.series)];
  }
}

void Recorder::finish() {
  write_spikes(watch_.finish(last_step_));
  flush();
}

}  // namespace gradflow
