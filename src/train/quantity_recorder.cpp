#include "train/quantity_recorder.h"

#include <chrono>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "config/derived.h"
#include "config/quantities.h"
#include "core/interrupt.h"
#include "train/saved_state.h"

namespace gradflow {
namespace {

constexpr const char* file_name = "quantities.csv";

std::set<std::string_view> on_demand(const RecordConfig& record) {
  return on_demand_among(quantities_asked_for(record.quantities));
}

}  // namespace

bool QuantityRecorder::is_asked_for(const RecordConfig& record) { return !on_demand(record).empty(); }

QuantityRecorder::QuantityRecorder(const Config& config, Stack& stack, const DataSource& data, at::Device device,
                                   std::string folder, std::function<void(double)> account)
    : config_(config),
      stack_(stack),
      folder_(std::move(folder)),
      account_(std::move(account)),
      meter_(config, data.validation_batch(0), device, on_demand(config.record)) {}

void QuantityRecorder::begin() {
  file_.emplace(folder_ + '/' + file_name, quantities_columns());
  write(0);
}

void QuantityRecorder::go_on() {
  // A run with more steps may not want what was only due because its last step was the last.
  if (owed_ && is_due(last_step_, config_.record.layers_every, config_.train.steps)) write_due();
  owed_ = false;
}

void QuantityRecorder::save(SavedState& state) {
  file_->sync();
  state.files[file_name] = {file_->length(), length_if_longer_};
  state.rows["quantities"] = {static_cast<double>(last_step_), static_cast<double>(updates_), owed_ ? 1.0 : 0.0};
}

void QuantityRecorder::restore(const SavedState& state) {
  const std::vector<double>& row = state.row("quantities");
  if (row.size() != 3) throw std::range_error("quantities: another state");
  last_step_ = static_cast<std::int64_t>(row[0]);
  updates_ = static_cast<std::int64_t>(row[1]);
  owed_ = row[2] != 0;
  state.file(file_name);
}

void QuantityRecorder::reopen(const SavedState& state) {
  const SavedFile& saved = state.file(file_name);
  length_if_longer_ = saved.longer_run_length;
  file_.emplace(folder_ + '/' + file_name, quantities_columns(), saved.length_for(last_step_ == config_.train.steps));
}

void QuantityRecorder::step_done(const StepResult& result) {
  last_step_ = result.step;
  if (result.update && !result.skipped) ++updates_;
  length_if_longer_ = file_->length();
  if (!result.last && !is_due(result.step, config_.record.layers_every, config_.train.steps)) return;
  try {
    write_due();
  } catch (const Interrupted&) {
    owed_ = true;
  }
}

void QuantityRecorder::write_due() {
  write(last_step_);
  if (is_due(last_step_, config_.record.layers_every, no_last_step)) length_if_longer_ = file_->length();
}

void QuantityRecorder::write(std::int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  ParameterStore& store = stack_.store();
  std::optional<SecondMoment> second_moment;
  if (moment_count(config_.train) == 2) {
    second_moment.emplace(SecondMoment{{}, updates_});
    for (const ParameterStore::Entry& entry : store.entries())
      second_moment->of_entries.push_back(store.second_moment().narrow(0, entry.offset, entry.size));
  }
  for (const StackNumber& number : meter_.measure(store, step, second_moment)) {
    const Cell row[] = {step, number.layer ? Cell{*number.layer} : Cell{}, Cell{}, std::string(number.quantity),
                        number.value};
    file_->write(row);
  }
  file_->flush();
  account_(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace gradflow
