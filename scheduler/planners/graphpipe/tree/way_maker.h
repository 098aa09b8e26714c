/// WayMaker makes ways from stages and from other ways for the search over trees (tree_search.h),
/// within a limit, devices and memory.
///
/// It owns the parts of ways (Pieces) and keeps only ways worth keeping (front.h). One thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition_problem.h"
#include "stagecraft/scheduler/planners/graphpipe/problem/stage_load.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/front.h"

namespace stagecraft::graphpipe {

/// After describes the work after a part of the graph.
struct After {
  int in_flight = 0;
  int turns = -1;
};

class WayMaker {
 public:
  /// `limit`: per sample, of every stage. `least_in_flight`: of ways with equal devices, keeps the
  /// one with the least in flight; with limited memory it always does.
  WayMaker(const PartitionProblem& problem, double limit, bool least_in_flight)
      : problem_(&problem),
        limit_(limit),
        any_in_flight_(!least_in_flight && std::isinf(problem.memory)) {
    for (const Variant& variant : problem.variants) {
      if (turns_.empty() || turns_.back() != variant.turns) {
        turns_.push_back(variant.turns);
      }
      turns_of_.push_back(static_cast<int>(turns_.size()) - 1);
    }
    // With unlimited memory and one kind of turns, the samples in flight after a way only shift its
    // own.
    shifts_ = std::isinf(problem.memory) && turns_.size() == 1;
  }

  [[nodiscard]] const Pieces& pieces() const { return pieces_; }

  /// Returns the only way to run nothing before `after`.
  [[nodiscard]] static Front nothing_before(const After& after) {
    Front front;
    front.insert({.in_flight = after.in_flight, .turns = after.turns}, false);
    return front;
  }
  /// Returns the facts that a part before the way needs; join() adds the rest.
  [[nodiscard]] After after(const Way& way) const {
    return shifts_ ? After{0, way.turns} : After{way.in_flight, way.turns};
  }

  /// Puts the operators of the load as a stage before every way of `from`. `left`: work before the
  /// stage.
  void extend(const Front& from, Front& to, double left, const StageLoad& load) {
    extend(from, to, left, load.sums(), [&] { return load.operators(); });
  }
  /// Does the same from sums (stage_load.h). `operators`: returns the operators of the stage.
  template <class Operators>
  void extend(const Front& from,
              Front& to,
              double left,
              std::span<const double> sums,
              const Operators& operators);
  /// Puts `part`, found for after(way), before a way whose stages it feeds.
  void join(const Way& way, const Way& part, Front& to);
  /// Combines the parts of branches that run at the same time.
  void beside(const Front& some, const Front& others, Front& to);

 private:
  /// Keeps a way made of two pieces, if there are enough devices and no other way dominates it.
  void keep(Way made, int first, int second, Front& to);

  const PartitionProblem* problem_;
  double limit_;
  bool any_in_flight_;
  bool shifts_ = false;
  std::vector<StagePace> turns_;
  std::vector<int> turns_of_;  // by variant
  Pieces pieces_;
};

template <class Operators>
void WayMaker::extend(const Front& from,
                      Front& to,
                      double left,
                      std::span<const double> sums,
                      const Operators& operators) {
  for (const Way& way : from.ways()) {
    for (int v = 0; v < static_cast<int>(problem_->variants.size()); ++v) {
      const Variant& variant = problem_->variants[at(v)];
      Way made{.devices = way.devices + variant.devices, .turns = turns_of_[at(v)]};
      if (time_of(sums, v) > limit_ ||
          made.devices + std::ceil(left / limit_ - 1e-9) > problem_->devices) {
        continue;
      }
      made.in_flight = way.turns < 0
                           ? sink_in_flight(variant.turns)
                           : compute_in_flight(variant.turns, turns_[at(way.turns)], way.in_flight);
      const double bytes = bytes_of(sums, v, made.in_flight);
      made.peak = std::max(way.peak, bytes);
      if (bytes <= problem_->memory && to.takes(made, any_in_flight_)) {
        made.piece = pieces_.join(way.piece, pieces_.stage(operators(), v));
        to.insert(made, any_in_flight_);
      }
    }
  }
}

}  // namespace stagecraft::graphpipe
