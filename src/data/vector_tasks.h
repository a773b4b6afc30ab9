#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/config.h"
#include "data/sample_task.h"

namespace gradflow {

/// `teacher`: standard normal vectors x, labelled by argmax W₂ tanh(W₁ x) with 64 hidden units and normal weights of
/// variance 1/(fan in), fixed by `data.seed`. Classes are not equally frequent: H₁ is estimated from 4096 vectors of
/// a stream that no batch uses.
class TeacherTask : public SampleTask {
 public:
  explicit TeacherTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  std::vector<std::int64_t> shape() const override { return {inputs_}; }
  std::int64_t draw(const SequenceDraw& draw, std::span<double> input) const override;
  /// The class that the teacher gives a vector.
  std::int64_t label(std::span<const double> input) const;

 private:
  std::int64_t inputs_;
  std::vector<double> first_, second_;  // [hidden][inputs], [classes][hidden]
  TaskFacts facts_;
};

/// `clusters`: a class uniformly, then x = (μ + z)/√2 with z standard normal and the centres μ standard normal too,
/// fixed by `data.seed`: every feature has variance 1 on average over tasks. H₁ = ln(classes).
class ClustersTask : public SampleTask {
 public:
  explicit ClustersTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  std::vector<std::int64_t> shape() const override { return {inputs_}; }
  std::int64_t draw(const SequenceDraw& draw, std::span<double> input) const override;

 private:
  std::int64_t inputs_;
  std::int64_t classes_;
  std::vector<double> centres_;  // [classes][inputs]
  TaskFacts facts_;
};

/// `identity`: standard normal vectors that the model shall give back. The best constant answer is 0, its loss the
/// variance: 1, which stands in the place of H₁; the optimum is 0.
class IdentityTask : public SampleTask {
 public:
  explicit IdentityTask(const DataConfig& data);

  const TaskFacts& facts() const override { return facts_; }
  std::vector<std::int64_t> shape() const override { return {inputs_}; }
  bool asks_for_input() const override { return true; }
  std::int64_t draw(const SequenceDraw& draw, std::span<double> input) const override;

 private:
  std::int64_t inputs_;
  TaskFacts facts_;
};

}  // namespace gradflow
