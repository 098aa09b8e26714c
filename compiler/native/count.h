/// count adds numbers to the counts of a training step: the tokens of each expert, those that found
/// no place, the samples that were masked.
///
///   sc::count("tokens_per_expert", placed.sum(at::IntArrayRef{0, 2}));   // in forward or loss
///
/// A StepResult has the sums over all microbatches of the step, from all ranks. Calls with one name
/// add up, element by element, also those of different layers.
///
/// UC-1: the forward of a training step counts: no replay of it (recompute), no evaluation, and not
///       the module outside of a trainer.
/// UC-2: counting changes no value and no gradient.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// The most numbers of one count: they travel in messages.
inline constexpr std::int64_t kMostCounted = 4096;
inline constexpr std::string_view kCountOperator = "stagecraft::count";

/// Adds real numbers, of any shape, to the count of this name; they are counted flat.
/// Errors: UsageArgument for an empty name, more than kMostCounted numbers, and complex ones.
/// compile refuses calls with one name and several sizes.
void count(std::string_view name, const at::Tensor& numbers);

/// Counts are sums by name.
using Counts = std::map<std::string, std::vector<double>>;

/// Adds numbers to the count of this name.
void add_count(Counts& sums, const std::string& name, const std::vector<double>& numbers);

/// Returns the number of numbers of each count in the graph. Errors: CompileCapture if calls with
/// one name have several.
[[nodiscard]] std::map<std::string, std::int64_t> counts_in(const Graph& graph);

/// StepCounts collects what is counted in one step. Reading a number waits for the device, so the
/// sums stay tensors until the step ends.
class StepCounts {
 public:
  void add(const std::string& name, const at::Tensor& numbers);

  /// Returns the sums so far.
  [[nodiscard]] Counts read() const;

 private:
  std::map<std::string, at::Tensor> sums_;
};

/// CountingScope makes calls of count on this thread add to `counts`, which outlives it.
class CountingScope {
 public:
  explicit CountingScope(StepCounts& counts);
  ~CountingScope();
  CountingScope(const CountingScope&) = delete;
  CountingScope& operator=(const CountingScope&) = delete;

 private:
  StepCounts* const before_;
};

}  // namespace stagecraft
