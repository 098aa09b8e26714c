/// DownsetSearch finds stages of any graph that all keep a limit of time. It searches among all
/// possible stages.
///
/// After the last stages are removed, the rest is a downset: a set of operators that contains
/// everything its operators read. For every downset the search computes how many devices the
/// removed part needs, and tries every set of operators that may be the downset's last stage. For
/// chains that are equal branches of a tree it tries only one order. For small graphs; one thread.
/// DS-1: no stages outside its result are faster, unless its effort is spent.
/// Source: ours, as the measure of the other modes; GraphPipe (Jeon et al.) has no such mode.
#pragma once

#include <memory>
#include <optional>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/twins.h"

namespace stagecraft::graphpipe {

class DownsetSearch {
 public:
  /// `effort`: the number of stages that may be tried before it gives up.
  /// Requires: takes_downsets(problem) (downset_count.h).
  DownsetSearch(const PartitionProblem& problem, long effort);
  ~DownsetSearch();
  DownsetSearch(const DownsetSearch&) = delete;
  DownsetSearch& operator=(const DownsetSearch&) = delete;

  /// Returns stages within devices and memory that take at most `limit` per sample, or nothing if
  /// there are none. With `least_in_flight` it returns those with the least in flight, unless there
  /// are too many ways to compare.
  [[nodiscard]] std::optional<Partition> find(double limit, bool least_in_flight);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft::graphpipe
