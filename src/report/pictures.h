#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace gradflow {

/// A static picture and the name of its file.
struct Picture {
  std::string section;  ///< of the page: loss, gradient, variance, update
  std::string file;     ///< "loss.svg", "loss-learning_rate=0.01.svg"
  std::string title;    ///< the question that it answers
  std::string choice;   ///< which setting of the further axes; empty where there are none
  std::string svg;
};

/// The pictures of a study: training loss, gradient, stream variance and update ratio over depth at the last layer step
/// of the study, each once for every setting of the further axes. Line: mean over seeds (geometric on logarithmic
/// axes), band: their range. What no run has measured is left out; the gradient of the stream is replaced by that of
/// the parameters.
std::vector<Picture> static_pictures(const Report& report);

/// The recorded steps of all runs, and the layer steps that runs which came to their end have in common.
std::vector<std::int64_t> all_steps(const Report& report);
std::vector<std::int64_t> all_layer_steps(const Report& report);

/// What a quantity over depth is called, and the question that its picture answers.
struct QuantityWords {
  std::string_view name;      ///< column of layers.csv
  std::string_view label;     ///< "stream gradient, ‖∂L/∂x‖"
  std::string_view question;  ///< of its heat map
};
const QuantityWords& words_of(std::string_view quantity);

}  // namespace gradflow
