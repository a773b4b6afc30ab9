#include "data/image_tasks.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "config/derived.h"
#include "core/error.h"
#include "core/files.h"
#include "data/entropy.h"
#include "model/feedforward_layout.h"

namespace gradflow {

namespace {

/// Values of a sample behind all its pixels.
constexpr std::uint64_t class_value = std::uint64_t{1} << 23;
constexpr std::uint64_t first_phase = class_value + 1;

constexpr std::int64_t cifar_side = 32;
constexpr std::uint64_t plane_bytes = cifar_side * cifar_side;
constexpr std::uint64_t record_bytes = 1 + image_channels * plane_bytes;

}  // namespace

TextureTask::TextureTask(const DataConfig& data) : side_(data.side), classes_(data.classes) {
  constexpr double turn = 2 * std::numbers::pi;
  const RandomStream stream(static_cast<std::uint64_t>(data.seed), "textures");
  waves_.resize(static_cast<std::size_t>(classes_) * waves_each);
  std::uint64_t next = 0;
  for (Wave& wave : waves_) {
    // Between one wave an image and four pixels a wave.
    const double side = static_cast<double>(side_);
    const double waves_an_image = 1 + stream.uniform(next++) * (side / 4 - 1);
    const double direction = turn / 2 * stream.uniform(next++);
    wave.across = turn * waves_an_image * std::cos(direction) / side;
    wave.down = turn * waves_an_image * std::sin(direction) / side;
    for (double& phase : wave.phases) phase = turn * stream.uniform(next++);
  }
  facts_.vocabulary = classes_;
  facts_.unigram_entropy = std::log(static_cast<double>(classes_));
}

std::vector<std::int64_t> TextureTask::shape() const { return {image_channels, side_, side_}; }

std::int64_t TextureTask::draw(const SequenceDraw& draw, std::span<double> input) const {
  const std::int64_t label = draw.below(classes_, class_value);
  for (std::size_t j = 0; j < input.size(); ++j) input[j] = 0.6 * draw.normal(j);
  for (std::size_t w = 0; w < waves_each; ++w) {
    const Wave& wave = waves_[static_cast<std::size_t>(label) * waves_each + w];
    const double shift = 2 * std::numbers::pi * draw.uniform(first_phase + w);
    double* pixel = input.data();
    for (const double colour : wave.phases)
      for (std::int64_t row = 0; row < side_; ++row)
        for (std::int64_t column = 0; column < side_; ++column)
          *pixel++ += 0.8 * std::cos(wave.across * static_cast<double>(column) + wave.down * static_cast<double>(row) +
                                     colour + shift);
  }
  return label;
}

CifarTask::CifarTask(const DataConfig& data, std::int64_t seed, bool evaluates)
    : data_(data), side_(data.side), order_(static_cast<std::uint64_t>(seed), "data.order") {
  std::vector<std::string> faults;
  if (cifar_side % side_ != 0)
    faults.push_back(fmt::format(
        "data.side: {} does not divide the 32 pixels of the data set's images; write 4, 8, 16 or 32", side_));
  for (const std::string& path : data.files) {
    try {
      read(path, data.classes);
    } catch (const Error& error) {
      for (const std::string& line : error.lines()) faults.push_back("data.files: " + line);
    }
  }
  if (!faults.empty()) throw Error(faults);

  const std::uint64_t records = bytes_.size() / record_bytes;
  validation_records_ =
      static_cast<std::uint64_t>(share_of(data.validation_fraction, static_cast<std::int64_t>(records)));
  training_records_ = records - validation_records_;
  require_records(Part::training);
  if (evaluates) require_records(Part::validation);
  normalize_colours();

  std::vector<double> counts(static_cast<std::size_t>(data.classes));
  for (std::uint64_t record = 0; record < training_records_; ++record)
    ++counts[static_cast<std::size_t>(label(record))];
  facts_.vocabulary = data.classes;
  facts_.unigram_entropy = entropy(counts);
}

void CifarTask::read(const std::string& path, std::int64_t classes) {
  const std::string content = read_file(path);
  if (content.empty() || content.size() % record_bytes != 0)
    throw Error(
        fmt::format("{}: {} bytes are not records of {} bytes (a label, then 32·32 bytes each of red, green and "
                    "blue); give the files of the data set's binary version, such as data_batch_1.bin",
                    path, content.size(), record_bytes));
  for (std::uint64_t offset = 0; offset < content.size(); offset += record_bytes) {
    const auto found = static_cast<unsigned char>(content[offset]);
    if (found >= classes)
      throw Error(
          fmt::format("{}: record {} (byte {}) has the label {}, beyond the {} classes of data.classes; write a "
                      "larger data.classes, or give the files of the data set's binary version",
                      path, offset / record_bytes + 1, offset, found, classes));
  }
  bytes_ += content;
}

void CifarTask::require_records(Part part) const {
  const bool training = part == Part::training;
  if ((training ? training_records_ : validation_records_) > 0) return;
  throw Error(
      fmt::format("data.validation_fraction: {} of {} records leaves none for {}; write a {} fraction or give "
                  "more files in data.files",
                  data_.validation_fraction, training_records_ + validation_records_,
                  training ? "training" : "validation", training ? "smaller" : "larger"));
}

void CifarTask::normalize_colours() {
  const double pixels = static_cast<double>(training_records_) * static_cast<double>(side_ * side_);
  for (std::int64_t channel = 0; channel < image_channels; ++channel) {
    double sum = 0, squares = 0;
    for (std::uint64_t record = 0; record < training_records_; ++record)
      for (std::int64_t row = 0; row < side_; ++row)
        for (std::int64_t column = 0; column < side_; ++column) {
          const double value = pixel(record, channel, row, column);
          sum += value;
          squares += value * value;
        }
    const double mean = sum / pixels, variance = squares / pixels - mean * mean;
    mean_[channel] = mean;
    // A colour that is the same everywhere stays at 0.
    std_[channel] = variance > 0 ? std::sqrt(variance) : 1;
  }
}

std::vector<std::int64_t> CifarTask::shape() const { return {image_channels, side_, side_}; }

std::int64_t CifarTask::label(std::uint64_t record) const {
  return static_cast<unsigned char>(bytes_[record * record_bytes]);
}

double CifarTask::pixel(std::uint64_t record, std::int64_t channel, std::int64_t row, std::int64_t column) const {
  const std::int64_t square = cifar_side / side_;
  const char* const plane =
      bytes_.data() + record * record_bytes + 1 + static_cast<std::uint64_t>(channel) * plane_bytes;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < square; ++i)
    for (std::int64_t j = 0; j < square; ++j)
      sum += static_cast<unsigned char>(plane[(row * square + i) * cifar_side + column * square + j]);
  return static_cast<double>(sum) / static_cast<double>(square * square);
}

std::uint64_t CifarTask::record_of(const SequenceDraw& draw) const {
  if (draw.part() == Part::validation) return training_records_ + draw.number() % validation_records_;
  return shuffled(order_, draw.number() / training_records_, draw.number() % training_records_, training_records_);
}

std::int64_t CifarTask::draw(const SequenceDraw& draw, std::span<double> input) const {
  require_records(draw.part());
  const std::uint64_t record = record_of(draw);
  double* value = input.data();
  for (std::int64_t channel = 0; channel < image_channels; ++channel)
    for (std::int64_t row = 0; row < side_; ++row)
      for (std::int64_t column = 0; column < side_; ++column)
        *value++ = (pixel(record, channel, row, column) - mean_[channel]) / std_[channel];
  return label(record);
}

std::uint64_t shuffled(const RandomStream& order, std::uint64_t epoch, std::uint64_t number, std::uint64_t count) {
  if (count == 1) return 0;
  constexpr std::uint64_t rounds = 4;
  const auto half_bits = static_cast<std::uint64_t>(std::bit_width(count - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t place = number;
  do {
    std::uint64_t left = place >> half_bits, right = place & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t mixed = left ^ (order.bits(epoch << 18 | round << 16 | right) & mask);
      left = right;
      right = mixed;
    }
    place = left << half_bits | right;
  } while (place >= count);
  return place;
}

}  // namespace gradflow
