/// StageLoad tracks the costs of a set of operators as one stage, while the set grows and shrinks.
///
/// Operators are added consumers first and removed in the opposite order. The object keeps the sums
/// before each addition, so a set that has shrunk has its earlier cost to the last bit. The
/// searches, which try many stages that differ by one operator, use it. It views problem and graph;
/// one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition_problem.h"

namespace stagecraft::graphpipe {

/// StageSums holds the costs of a stage, as sums over its operators. The sums of sets that do not
/// feed each other add up.
class StageSums {
 public:
  explicit StageSums(std::size_t variants) : sums_(2 * variants + 1) {}
  explicit StageSums(std::span<const double> sums) : sums_(sums.begin(), sums.end()) {}

  StageSums& operator+=(const StageSums& more) {
    std::ranges::transform(sums_, more.sums_, sums_.begin(), std::plus<>());
    return *this;
  }
  [[nodiscard]] std::span<const double> view() const { return sums_; }

 private:
  std::vector<double> sums_;
};

/// Returns the seconds per sample from such sums.
[[nodiscard]] inline double time_of(std::span<const double> sums, int variant) {
  return sums[static_cast<std::size_t>(variant)];
}
/// Returns the bytes on each device from such sums, with so many samples in flight.
[[nodiscard]] inline double bytes_of(std::span<const double> sums, int variant, int in_flight) {
  return sums.back() + sums[sums.size() / 2 + static_cast<std::size_t>(variant)] * in_flight;
}

class StageLoad {
 public:
  /// `graph`: the neighbors by the problem's edges.
  StageLoad(const PartitionProblem& problem, const Neighbors& graph);

  /// Adds an operator. Requires: the stage already holds all consumers of `op` that it is to hold.
  void add(int op);
  /// Adds operators [begin, end), the last first.
  void add(int begin, int end) {
    while (end-- > begin) {
      add(end);
    }
  }
  /// Removes the latest operators until `size` are left.
  void shrink(std::size_t size);

  [[nodiscard]] std::size_t size() const { return operators_.size(); }
  [[nodiscard]] const std::vector<int>& operators() const { return operators_; }
  [[nodiscard]] std::span<const double> sums() const { return std::span(sums_).last(width_); }
  [[nodiscard]] double time(int variant) const { return time_of(sums(), variant); }
  /// Returns the bytes on each device, with so many samples in flight.
  [[nodiscard]] double bytes(int variant, int in_flight) const {
    return bytes_of(sums(), variant, in_flight);
  }
  /// Returns whether some variant keeps the limit per sample. Adding operators never turns false
  /// into true.
  [[nodiscard]] bool within(double limit) const;

 private:
  const PartitionProblem* problem_;
  const Neighbors* graph_;
  std::size_t width_;
  std::vector<char> in_;
  std::vector<int> operators_;
  std::vector<double> sums_;  ///< by size: time and bytes in flight of every variant, fixed bytes
};

}  // namespace stagecraft::graphpipe
