/// BranchWays finds the ways to run the branches of an item: each as stages of its own, or several
/// as one stage.
///
///     a || b || c    with few branches every set may be a stage: {a} {b c}, {a c} {b} ..;
///                    with many, ranges of the branches sorted by their work
///
/// The search over trees (tree_search.h) uses it, and it calls back for the ways of one branch. It
/// views problem, tree and maker; one thread.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/stage_load.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/tree_rows.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/way_maker.h"

namespace stagecraft::graphpipe {

/// Split is a branch of an item, divided before its item `split`. Branch -1: all branches are
/// whole.
struct Split {
  int branch = -1;
  int split = 0;
};

/// RowPart holds the items [lo, hi) of a row.
struct RowPart {
  int row = 0;
  int lo = 0;
  int hi = 0;

  friend constexpr auto operator<=>(const RowPart&, const RowPart&) = default;
};

class BranchWays {
 public:
  /// Returns the ways to run a part of a row before `after`.
  using RowWays = std::function<const Front&(const RowPart& part, const After& after)>;

  /// `load`: an empty one of the problem. `work`: sums before every place.
  BranchWays(const PartitionProblem& problem,
             const TreeRows& tree,
             StageLoad load,
             std::span<const double> work,
             WayMaker& maker,
             RowWays row_ways);

  /// Returns the ways to run all branches of the item, without the end of the branch that `cut`
  /// leaves out, and with only the beginning of the branch that `lead` leaves to do. The reference
  /// stays valid.
  [[nodiscard]] const Front& of(const TreeItem& item, Split cut, Split lead, const After& after);

 private:
  [[nodiscard]] Front sets_of(const std::vector<RowPart>& branches, const After& after);
  [[nodiscard]] Front ranges_of(std::vector<RowPart> branches, const After& after);
  /// Returns the ways to run branches together as one stage, or a single branch as a row.
  [[nodiscard]] Front together(std::span<const RowPart> branches, const After& after);
  /// Returns the costs of a part if its stage holds nothing else that the part feeds.
  [[nodiscard]] const StageSums& sums_of(const RowPart& part);

  const PartitionProblem* problem_;
  const TreeRows* tree_;
  StageLoad load_;
  std::span<const double> work_;
  WayMaker* maker_;
  RowWays row_ways_;
  std::map<RowPart, StageSums> sums_;
  std::map<std::array<int, 7>, Front> known_;  // by places, cut, lead and after
};

}  // namespace stagecraft::graphpipe
