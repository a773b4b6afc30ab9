#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/philox.h"
#include "data/sample_task.h"

namespace gradflow {

/// `cifar10` without files, a stand-in of the same layout: images [3, side, side] of textures. A class has two plane
/// waves with colours of their own, fixed by `data.seed`; a sample has its class uniformly, a random phase of each wave
/// and noise: 0.8·(cos + cos) + 0.6·z, so that every pixel has mean 0 and variance 1. H₁ = ln(classes).
class TextureTask : public SampleTask {
 public:
  explicit TextureTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  std::vector<std::int64_t> shape() const override;
  std::int64_t draw(const SequenceDraw& draw, std::span<double> input) const override;

 private:
  struct Wave {
    double across = 0, down = 0;  ///< radians a pixel
    double phases[3] = {};        ///< of each colour
  };
  static constexpr std::size_t waves_each = 2;

  std::int64_t side_;
  std::int64_t classes_;
  std::vector<Wave> waves_;  // [classes][waves_each]
  TaskFacts facts_;
};

/// `cifar10` with the binary files of the data set (Krizhevsky 2009): records of one label byte and 32·32 bytes each
/// of red, green and blue. The last ⌊validation_fraction·records⌋ of all files together are for validation, in their
/// order; the others are for training, in a new random order each epoch. A `data.side` below 32 averages squares of
/// pixels. Colours are normalised to mean 0 and variance 1 over the training part, whose labels give H₁.
class CifarTask : public SampleTask {
 public:
  /// Reads `data.files`. Throws Error (file, record, remedy) for a file that is missing or of another layout, a label
  /// beyond `data.classes`, a side that does not divide 32, and parts without records (validation: if `evaluates`).
  CifarTask(const DataConfig& data, std::int64_t seed, bool evaluates);

  const TaskFacts& facts() const override { return facts_; }
  std::vector<std::int64_t> shape() const override;
  std::int64_t draw(const SequenceDraw& draw, std::span<double> input) const override;

 private:
  void read(const std::string& path, std::int64_t classes);
  void require_records(Part part) const;
  void normalize_colours();
  std::uint64_t record_of(const SequenceDraw& draw) const;
  std::int64_t label(std::uint64_t record) const;
  /// Mean of a square of pixels, 0…255.
  double pixel(std::uint64_t record, std::int64_t channel, std::int64_t row, std::int64_t column) const;

  DataConfig data_;
  std::int64_t side_;
  std::string bytes_;
  std::uint64_t training_records_ = 0;
  std::uint64_t validation_records_ = 0;
  double mean_[3] = {};
  double std_[3] = {};
  RandomStream order_;
  TaskFacts facts_;
};

/// Where `number` stands in a random order of 0…count−1, `count` below 2^32; each epoch has its own order. A Feistel
/// network over the next power of four, walked until it falls below count: nothing is stored, so any position of any
/// epoch is found at once.
std::uint64_t shuffled(const RandomStream& order, std::uint64_t epoch, std::uint64_t number, std::uint64_t count);

}  // namespace gradflow
