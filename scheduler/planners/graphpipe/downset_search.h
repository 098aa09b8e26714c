/// DownsetSearch: stages of any graph of which none takes longer than a limit, among all that there
/// are.
///
/// What is left to do when the last stages are taken away is a downset: a set of operators with all
/// that they read. Every downset is asked how many devices what lies behind it takes, and every set
/// of operators that may be its last stage is tried. Of chains that are equal branches of a tree
/// only one order is tried. For small graphs; one thread.
/// DS-1: no stages that it does not find are faster, unless its effort is spent.
/// Source: GraphPipe (Jeon et al.) has no such mode; it is ours, to judge the others by.
#pragma once

#include <memory>
#include <optional>

#include "stagecraft/scheduler/planners/graphpipe/partition.h"
#include "stagecraft/scheduler/planners/graphpipe/twins.h"

namespace stagecraft::graphpipe {

class DownsetSearch {
 public:
  /// `effort`: how many stages may be tried before it gives up.
  /// Requires: takes_downsets(problem) (downset_count.h).
  DownsetSearch(const PartitionProblem& problem, long effort);
  ~DownsetSearch();
  DownsetSearch(const DownsetSearch&) = delete;
  DownsetSearch& operator=(const DownsetSearch&) = delete;

  /// Returns stages within devices and memory that take `limit` per sample at most, or nothing
  /// where there are none; of them those with the least in flight, if they are asked for and there
  /// are not too many ways to compare.
  [[nodiscard]] std::optional<Partition> find(double limit, bool least_in_flight);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft::graphpipe
