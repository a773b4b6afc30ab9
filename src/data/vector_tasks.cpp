#include "data/vector_tasks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/philox.h"
#include "data/entropy.h"

namespace gradflow {

namespace {

/// The value of a sample behind all its features.
constexpr std::uint64_t class_value = std::uint64_t{1} << 23;

std::vector<double> normals(const DataConfig& data, const char* name, std::int64_t count, double std) {
  const RandomStream stream(static_cast<std::uint64_t>(data.seed), name);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std * stream.normal(i);
  return values;
}

void draw_normals(const SequenceDraw& draw, std::span<double> input) {
  for (std::size_t j = 0; j < input.size(); ++j) input[j] = draw.normal(j);
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

constexpr std::int64_t teacher_hidden = 64;
constexpr std::uint64_t teacher_estimates = 4096;

}  // namespace

TeacherTask::TeacherTask(const DataConfig& data)
    : inputs_(data.inputs),
      first_(normals(data, "teacher.first", teacher_hidden * data.inputs,
                     1 / std::sqrt(static_cast<double>(data.inputs)))),
      second_(normals(data, "teacher.second", data.classes * teacher_hidden,
                      1 / std::sqrt(static_cast<double>(teacher_hidden)))) {
  facts_.vocabulary = data.classes;
  const RandomStream stream(static_cast<std::uint64_t>(data.seed), "teacher.frequencies");
  std::vector<double> counts(static_cast<std::size_t>(data.classes));
  std::vector<double> input(static_cast<std::size_t>(data.inputs));
  for (std::uint64_t number = 0; number < teacher_estimates; ++number)
    ++counts[static_cast<std::size_t>(draw({stream, Part::training, number}, input))];
  facts_.unigram_entropy = entropy(counts);
  facts_.entropy_rate = 0;
}

std::int64_t TeacherTask::label(std::span<const double> input) const {
  std::vector<double> hidden(teacher_hidden);
  for (std::size_t h = 0; h < hidden.size(); ++h)
    hidden[h] = std::tanh(dot(std::span(first_).subspan(h * input.size(), input.size()), input));
  std::vector<double> scores(second_.size() / hidden.size());
  for (std::size_t c = 0; c < scores.size(); ++c)
    scores[c] = dot(std::span(second_).subspan(c * hidden.size(), hidden.size()), hidden);
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

std::int64_t TeacherTask::draw(const SequenceDraw& draw, std::span<double> input) const {
  draw_normals(draw, input);
  return label(input);
}

ClustersTask::ClustersTask(const DataConfig& data)
    : inputs_(data.inputs),
      classes_(data.classes),
      centres_(normals(data, "clusters.centres", data.classes * data.inputs, 1)) {
  facts_.vocabulary = data.classes;
  facts_.unigram_entropy = std::log(static_cast<double>(data.classes));
}

std::int64_t ClustersTask::draw(const SequenceDraw& draw, std::span<double> input) const {
  const std::int64_t label = draw.below(classes_, class_value);
  draw_normals(draw, input);
  const auto centre = std::span(centres_).subspan(static_cast<std::size_t>(label) * input.size(), input.size());
  for (std::size_t j = 0; j < input.size(); ++j) input[j] = (input[j] + centre[j]) / std::numbers::sqrt2;
  return label;
}

IdentityTask::IdentityTask(const DataConfig& data) : inputs_(data.inputs) {
  facts_.unigram_entropy = 1;
  facts_.entropy_rate = 0;
}

std::int64_t IdentityTask::draw(const SequenceDraw& draw, std::span<double> input) const {
  draw_normals(draw, input);
  return 0;
}

}  // namespace gradflow
