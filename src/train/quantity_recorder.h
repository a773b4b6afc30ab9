#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/config.h"
#include "data/source.h"
#include "measure/on_demand.h"
#include "output/table.h"
#include "train/observer.h"

namespace gradflow {

/// Writes quantities.csv: the quantities on demand that record.quantities names, of the initial weights (step 0) and
/// after each update whose layer rows are due, over the first validation batch. A measurement that keeps a signal
/// waiting is given up and owed: the run that resumes makes it first, of the same weights.
class QuantityRecorder final : public Observer {
 public:
  /// `account` is told the seconds that each measurement took. Throws Error when the data keep no part for validation.
  QuantityRecorder(const Config& config, Stack& stack, const DataSource& data, at::Device device, std::string folder,
                   std::function<void(double)> account);
  /// Whether record.quantities names any.
  static bool is_asked_for(const RecordConfig& record);

  void begin() override;
  void go_on() override;
  bool owes() const override { return owed_; }
  void save(SavedState& state) override;
  void restore(const SavedState& state) override;
  void reopen(const SavedState& state) override;
  void step_done(const StepResult& result) override;

 private:
  void write(std::int64_t step);
  /// Writes what is due after the last step.
  void write_due();

  const Config& config_;
  Stack& stack_;
  std::string folder_;
  std::function<void(double)> account_;
  OnDemandMeter meter_;
  std::optional<CsvFile> file_;  // once the run has begun
  std::int64_t last_step_ = 0;
  std::int64_t updates_ = 0;
  bool owed_ = false;
  std::uint64_t length_if_longer_ = 0;  // of the file, had the last step not been the last
};

}  // namespace gradflow
