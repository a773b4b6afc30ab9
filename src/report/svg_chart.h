#pragma once

#include <string>
#include <vector>

#include "report/palette.h"
#include "report/report.h"

namespace gradflow {

/// A line with its band: the mean over seeds and their range at each x; nan where there is no number.
struct ChartLine {
  std::string name;
  Ink ink;
  std::vector<double> mean, low, high;
  /// What theory gives, drawn dashed; nan where it gives nothing, empty where there is no theory.
  std::vector<double> predicted_low = {}, predicted_high = {};
};

/// One picture of several that share their y axis.
struct ChartPanel {
  std::string title;
  std::string note;  ///< behind what lies off the scale: "diverged: no norm"
  std::vector<double> x;
  std::vector<ChartLine> lines;
  std::vector<ReferenceLine> references;
};

/// Line charts as one static picture, two side by side.
struct Chart {
  std::string id;           ///< a word; keeps the names inside the picture apart from those of another in the same page
  std::string title;        ///< the question that it answers
  std::string description;  ///< for who cannot see it
  std::string y_label;
  std::string x_label;
  std::string x_name;  ///< "step": of a line that ends off the scale, where
  double low = 0;      ///< of the y axis
  double high = 1;
  bool logarithmic = false;
  bool names_left = false;  ///< names of the lines left, axis right: where lines part at the input
  std::vector<ChartPanel> panels;
};

/// The picture as a whole SVG file: white ground, light colours, coordinates with one decimal. A line whose end lies
/// off the scale is named above its panel with its number.
std::string svg(const Chart& chart);

/// Round numbers from `low` to `high`, about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);
/// Powers of ten from `low` to `high`, at most eight.
std::vector<double> decade_ticks(double low, double high);

}  // namespace gradflow
