#include "config/compatibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "config/placements.h"
#include "config/text.h"

namespace gradflow {
namespace {

/// What a stack takes, whatever the placement; an empty list takes everything.
struct StackRow {
  StackKind stack;
  std::vector<Placement> placements;
  std::vector<Residual> residuals;
  std::vector<Norm> norms;
  std::vector<Task> tasks;
};

const StackRow& stack_row(StackKind stack) {
  static const std::vector<StackRow> rows{
      {.stack = StackKind::transformer,
       .placements = {},
       .residuals = {},
       .norms = {},
       .tasks = {Task::markov, Task::copy, Task::reverse, Task::sort, Task::majority, Task::modular, Task::random,
                 Task::quadratic, Task::text}},
      {.stack = StackKind::mlp,
       .placements = {Placement::pre, Placement::post},
       .residuals = {Residual::add, Residual::none, Residual::scaled, Residual::rezero, Residual::sqrt2},
       .norms = {},
       .tasks = {Task::teacher, Task::clusters, Task::identity, Task::cifar10}},
      {.stack = StackKind::resnet,
       .placements = {Placement::pre, Placement::post},
       .residuals = {Residual::add, Residual::none, Residual::scaled, Residual::rezero, Residual::sqrt2},
       .norms = {Norm::none, Norm::layernorm, Norm::rmsnorm, Norm::batchnorm},
       .tasks = {Task::cifar10}},
  };
  return rows[static_cast<std::size_t>(stack)];
}

template <class Choice>
std::vector<Choice> all_or(const std::vector<Choice>& listed_choices) {
  if (!listed_choices.empty()) return listed_choices;
  std::vector<Choice> all;
  for (std::size_t i = 0; i < names_of(Choice{}).size(); ++i) all.push_back(static_cast<Choice>(i));
  return all;
}

/// "all", "all but none", or the names.
template <class Choice>
std::string in_words(const std::vector<Choice>& allowed) {
  std::vector<std::string_view> missing;
  for (const Choice choice : all_or(std::vector<Choice>{}))
    if (std::find(allowed.begin(), allowed.end(), choice) == allowed.end()) missing.push_back(name_of(choice));
  if (missing.empty()) return "all";
  if (missing.size() <= 2) return "all but " + listed(missing);
  return listed(names_of_all(allowed));
}

}  // namespace

std::vector<Placement> allowed_placements(StackKind stack) { return all_or(stack_row(stack).placements); }

std::vector<Residual> allowed_residuals(StackKind stack, Placement placement) {
  if (placement_row(placement).own_sum) return {Residual::add};
  return all_or(stack_row(stack).residuals);
}

std::vector<Norm> allowed_norms(StackKind stack, Placement placement) {
  std::vector<Norm> norms = all_or(stack_row(stack).norms);
  if (placement_row(placement).needs_norm) std::erase(norms, Norm::none);
  return norms;
}

std::vector<Task> allowed_tasks(StackKind stack) { return all_or(stack_row(stack).tasks); }

std::string_view why_no_other_residual(StackKind stack, Placement placement) {
  if (placement_row(placement).own_sum) return "the placement defines its own sum";
  return stack_row(stack).residuals.empty() ? "" : "the stack takes these forms only";
}

std::string_view why_no_other_norm(StackKind stack, Placement placement) {
  if (placement_row(placement).needs_norm) return "the placement is nothing without a norm";
  return stack_row(stack).norms.empty() ? "" : "these norms are defined on images";
}

std::string compatibility_table() {
  std::string out = "| stack | placement | residual | norm | source |\n| --- | --- | --- | --- | --- |\n";
  for (const StackKind stack : all_or(std::vector<StackKind>{}))
    for (const Placement placement : allowed_placements(stack))
      out += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", name_of(stack), name_of(placement),
                         in_words(allowed_residuals(stack, placement)), in_words(allowed_norms(stack, placement)),
                         stack == StackKind::transformer ? placement_row(placement).source
                         : placement == Placement::pre   ? "He et al. 2016 (ResNet v2)"
                                                         : "He et al. 2015 (ResNet v1)");
  return out;
}

}  // namespace gradflow
