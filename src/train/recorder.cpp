#include "train/recorder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "config/quantities.h"

namespace gradflow {
namespace {

/// The columns that `record.quantities` asks for and that are measured while a step passes.
std::set<std::string_view> measured_columns(const RecordConfig& record) {
  std::set<std::string_view> columns = quantities_asked_for(record.quantities);
  std::erase_if(columns, [](std::string_view name) { return find_quantity(name)->set == QuantitySet::on_demand; });
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

}  // namespace

/// Adds the time of a scope to the recorder's account.
class Recorder::Stopwatch {
 public:
  explicit Stopwatch(Recorder& recorder) : recorder_(recorder), start_(Clock::now()) {}
  ~Stopwatch() { recorder_.recording_seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Recorder& recorder_;
  Clock::time_point start_;
};

Recorder::Recorder(const Config& config, Stack& stack, at::Device device, const std::string& folder)
    : config_(config),
      stack_(stack),
      meter_(stack.layout(), device),
      columns_(measured_columns(config.record)),
      watch_(config.record.spikes, names_of_rows(stack.layout())),
      steps_(folder + "/steps.csv", steps_columns()),
      layers_(folder + "/layers.csv", layers_columns()),
      spikes_file_(folder + "/spikes.csv", spikes_columns()),
      timing_(folder + "/timing.csv", timing_columns()),
      start_(Clock::now()) {
  if (config.record.tensors) tensors_.emplace(folder + "/tensors.csv", tensors_columns());
  if (std::set<Detail> details = details_among(columns_); !details.empty())
    details_.emplace(config, stack.layout(), std::move(details));
}

double Recorder::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

Watcher* Recorder::watcher_for(std::int64_t step) {
  streams_due_ = !columns_.empty() && is_due(step, config_.record.layers_every, config_.train.steps);
  if (!streams_due_) return nullptr;
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
  const Stopwatch stopwatch(*this);
  meter_.forward_done(segment, input, output, inside, batch);
  if (details_) details_->forward_done(segment, input, output, inside, batch);
}

void Recorder::gradient_arrived(std::size_t segment, const Stream& gradient) {
  const Stopwatch stopwatch(*this);
  meter_.gradient_arrived(segment, gradient);
  if (details_) details_->gradient_arrived(segment, gradient);
}

void Recorder::skip_gradient_found(std::size_t segment, const at::Tensor& gradient) {
  const Stopwatch stopwatch(*this);
  details_->skip_gradient_found(segment, gradient);
}

void Recorder::step_done(const StepResult& result) {
  const RecordConfig& record = config_.record;
  last_step_ = result.step;
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

    if (step_due || result.eval_loss) write_step(result);
    if (always || is_due(result.step, record.layers_every, config_.train.steps)) {
      write_layers(result.step, rows);
      if (tensors_) write_tensors(result);
      if (first_rows_.empty()) first_rows_ = rows;
      last_rows_ = std::move(rows);
    }
  }
  if (step_due) write_timing(result);
  flush_when_due();
}

void Recorder::flush_when_due() {
  // Whoever follows the files sees whole lines within a second.
  if (seconds() - flushed_at_ < 0.5) return;
  const Stopwatch stopwatch(*this);
  flush();
  flushed_at_ = seconds();
}

void Recorder::flush() {
  for (CsvFile* file : {&steps_, &layers_, &spikes_file_, &timing_}) file->flush();
  if (tensors_) tensors_->flush();
}

void Recorder::write_step(const StepResult& result) {
  const std::optional<double> update_norm =
      result.update ? std::optional(root_of_sum(result.update->update_squares)) : std::nullopt;
  const Cell row[] = {result.step,
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
  steps_.write(row);
}

void Recorder::write_layers(std::int64_t step, const std::vector<LayerRow>& rows) {
  std::vector<Cell> cells(layers_columns().size());
  for (const LayerRow& row : rows) {
    const ParameterNumbers& p = row.parameters;
    const Cell front[] = {step,
                          row.layer,
                          row.sublayer,
                          cell(p.grad_norm),
                          cell(p.weight_norm),
                          cell(p.update_norm),
                          cell(p.update_ratio)};
    std::copy(std::begin(front), std::end(front), cells.begin());
    for (std::size_t c = std::size(front); c < cells.size(); ++c) {
      const std::string_view column = layers_columns()[c].name;
      if (column == "nonfinite")
        cells[c] = p.nonfinite ? Cell{*p.nonfinite} : Cell{};
      else
        cells[c] = selected(column) ? cell(measured_value(row, column)) : Cell{};
    }
    layers_.write(cells);
  }
}

void Recorder::write_tensors(const StepResult& result) {
  const std::vector<ParameterNumbers> rows = tensor_numbers(result);
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const std::string& name = stack_.store().entries()[e].name;
    const Cell row[] = {result.step,
                        name,
                        cell(rows[e].grad_norm),
                        cell(rows[e].weight_norm),
                        cell(rows[e].update_norm),
                        cell(rows[e].update_ratio),
                        cell(spectral_norm(stack_.store().parameter(name)))};
    tensors_->write(row);
  }
}

void Recorder::write_timing(const StepResult& result) {
  const double now = seconds(), elapsed = now - timed_at_;
  const Cell row[] = {result.step, now, static_cast<double>(result.tokens - timed_tokens_) / elapsed,
                      (recording_seconds_ - timed_recording_) / elapsed};
  timing_.write(row);
  timed_at_ = now;
  timed_recording_ = recording_seconds_;
  timed_tokens_ = result.tokens;
}

void Recorder::write_spikes(const std::vector<SpikeRow>& rows) {
  for (const SpikeRow& row : rows) {
    spikes_file_.write(cells(row));
    ++spike_rows_[static_cast<std::size_t>(row.series)];
  }
}

void Recorder::finish() {
  write_spikes(watch_.finish(last_step_));
  flush();
}

}  // namespace gradflow
