/// Front holds the ways to run a part of a graph that are worth keeping. Pieces holds their parts.
///
/// A way dominates another if it takes no more devices, has no more in flight at its first stage,
/// and has the same turns there. The search over trees uses them; one thread.
#pragma once

#include <utility>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition.h"

namespace stagecraft::graphpipe {

/// Pieces holds stages and their combinations by number. Ways share common pieces.
class Pieces {
 public:
  static constexpr int kNone = -1;

  int stage(std::vector<int> operators, int variant) {
    stages_.push_back({std::move(operators), variant, 0});
    return add(kNone, static_cast<int>(stages_.size()) - 1);
  }
  int join(int a, int b) { return a == kNone ? b : b == kNone ? a : add(a, b); }
  [[nodiscard]] std::vector<PartitionStage> stages_of(int piece) const;

 private:
  int add(int a, int b) {
    pieces_.emplace_back(a, b);
    return static_cast<int>(pieces_.size()) - 1;
  }

  std::vector<std::pair<int, int>> pieces_;  // two pieces, or kNone and a stage
  std::vector<PartitionStage> stages_;
};

/// Way is a way to run everything after a place of the graph.
struct Way {
  int devices = 0;
  int in_flight = 0;  ///< samples, of the first stages
  int turns = -1;     ///< number of the first stages' turns; -1: there is no stage
  double peak = 0;    ///< bytes of the fullest device
  int piece = Pieces::kNone;
};

class Front {
 public:
  /// Returns whether no kept way dominates this one. `any_in_flight`: ignores the samples in
  /// flight.
  [[nodiscard]] bool takes(const Way& way, bool any_in_flight) const;
  /// Adds the way and drops the ways that it dominates. Requires: takes(way).
  void insert(const Way& way, bool any_in_flight);

  [[nodiscard]] const std::vector<Way>& ways() const { return ways_; }
  [[nodiscard]] bool empty() const { return ways_.empty(); }

 private:
  std::vector<Way> ways_;
};

}  // namespace stagecraft::graphpipe
