#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/probe_table.h"
#include "analysis/recorded_probe.h"
#include "analysis/run_series.h"
#include "analysis/study.h"
#include "report/palette.h"

namespace gradflow {

// What a report shows: the runs of a study, arranged by what differs between them, with their numbers. Everything that
// writes (page, Markdown, SVG) reads this and looks at no run folder.

/// A line of the pictures; hue means group and nothing else.
struct ReportGroup {
  std::string label;  ///< "pre", "no norm", "rezero", "learning rate 0.01"
  Ink ink;
};

/// A value to compare a loss with, drawn as a dashed line.
struct ReferenceLine {
  std::string name;
  double value = 0;
  bool above = false;  ///< its name stands above it
};

/// A picture among several side by side.
struct ReportPanel {
  std::string label;  ///< "depth 12", "warm-up 100"
  std::string value;  ///< "12"
  std::int64_t depth = 0;
  std::vector<ReferenceLine> lines;  ///< lowest first; empty where its runs disagree about them
};

/// What distinguishes groups, panels or, beyond both, settings of which the page shows one at a time.
struct ReportAxis {
  std::string name;                 ///< "placement", "depth", "learning rate"
  std::vector<std::string> values;  ///< as they are shown
};

/// How a run ended, for the eye: its verdict, or that there is none.
enum class Outcome { learned, learning, stuck, worse, diverged, finished, unfinished };
std::string_view name_of(Outcome outcome);
/// Whether a result is no better than the unigram entropy.
bool is_bad(Outcome outcome);

/// The quantities of layers.csv that the pictures show.
inline constexpr auto layer_quantities = std::to_array<std::string_view>(
    {"grad_norm", "stream_grad_norm", "stream_variance", "update_ratio", "branch_ratio"});

struct ReportRun {
  std::string path;
  std::size_t group = 0;
  std::size_t panel = 0;
  std::vector<std::size_t> choice;  ///< of each further axis the index of its value
  std::int64_t seed = 0;
  RunStatus status = RunStatus::finished;
  Outcome outcome = Outcome::finished;
  std::optional<double> first_loss, final_loss;
  std::optional<double> unigram_entropy, entropy_rate;
  std::int64_t parameters = 0;
  std::int64_t depth = 0;
  std::size_t sublayers = 1;        ///< rows of a block
  std::vector<std::int64_t> steps;  ///< recorded ones, and their numbers; nan where not measured
  std::vector<double> loss, grad_norm, learning_rate, eval_loss;
  std::vector<std::int64_t> layer_steps;
  /// One entry a quantity that was measured: [step][row] in one piece; rows: embedding, the sub-layers of each block,
  /// final norm, head. nan where not measured or where the stack has no such row.
  std::map<std::string_view, std::vector<double>> layers;
  std::vector<SpikeRow> spikes;
  std::optional<double> steps_per_second;

  std::size_t rows() const { return sublayers * static_cast<std::size_t>(depth) + 3; }
  std::int64_t last_step() const { return steps.empty() ? 0 : steps.back(); }
  /// The quantity after the last sub-layer of blocks 1…N at a recorded layer step; empty when not measured.
  std::vector<double> profile(std::string_view quantity, std::size_t layer_step) const;
};

/// The runs that differ only by their seed.
struct ReportCell {
  std::size_t group = 0;
  std::size_t panel = 0;
  std::vector<std::size_t> choice;
  std::vector<std::size_t> runs;  ///< indices, by seed
};

/// A spike of one run; its place in the list is its number in the page.
struct ReportSpike {
  std::size_t run = 0;
  SpikeRow row;
};

/// Stacks that were measured without training.
struct ReportProbe {
  RecordedProbe record;
  CellProfiles profiles;            ///< of its cells
  std::vector<ProbeKind> kinds;     ///< of stacks
  std::vector<ReportGroup> groups;  ///< of each kind its name and ink
};

/// Without a run there is nothing but probes.
struct Report {
  std::string title;
  std::string question;                  ///< that the study answers: "which placement trains at which depth?"
  std::string command;                   ///< that makes the report again
  std::string loss_unit;                 ///< "nats a token"
  ReportAxis group_axis;                 ///< what colour means
  std::optional<ReportAxis> panel_axis;  ///< absent: there is one panel
  std::vector<ReportAxis> axes;          ///< further ones
  std::vector<ReportGroup> groups;
  std::vector<ReportPanel> panels;
  std::vector<ReportRun> runs;
  std::vector<ReportCell> cells;       ///< by group, panel, choice
  std::vector<ReportSpike> spikes;     ///< of runs that learned first, of them the highest scores first
  std::vector<RecordedRun> records;    ///< of `runs`, in their order: configuration and manifest
  std::vector<std::string> differing;  ///< keys whose values are not the same in all runs, the seed among them
  std::vector<ReportProbe> probes;
  std::vector<LeftOut> left_out;

  /// Absent (nullptr) when no such run was made.
  const ReportCell* cell(std::size_t group, std::size_t panel, std::span<const std::size_t> choice) const;
  /// Every combination of values of the further axes that some run has, in order; an empty one where there are none.
  std::vector<std::vector<std::size_t>> choices() const;
  /// "learning rate 0.01, warm-up 100"; empty where there are no further axes.
  std::string choice_label(std::span<const std::size_t> choice) const;
  /// Whether some run has measured the quantity.
  bool measured(std::string_view quantity) const;
  /// Whether some run has a validation loss.
  bool evaluated() const;
};

/// Arranges the runs of a study and reads their tables. Placement, residual form and norm are what colour means (where
/// none of them differs, the first key that does beside the depth); depth, else the next key, tells the panels apart;
/// further keys are axes only where they split runs that the others leave together. A run whose tables are damaged is
/// left out and listed, and so is a folder of a probe that is damaged. Throws Error when neither run nor probe is left.
Report make_report(Study study, const std::string& name, std::span<const std::string> probe_folders = {});

}  // namespace gradflow
