/// BranchWays: the ways to run the branches of an item, each as stages of its own or several as
/// one.
///
///     a || b || c    of few branches every set may be a stage: {a} {b c}, {a c} {b} ..;
///                    of many, ranges of them by their work
///
/// For the search over trees (tree_search.h), which it asks in turn for the ways of one branch.
/// Views problem, tree and maker; one thread.
#pragma once

#include <array>
#include <compare>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/stage_load.h"
#include "stagecraft/scheduler/planners/graphpipe/tree_rows.h"
#include "stagecraft/scheduler/planners/graphpipe/way_maker.h"

namespace stagecraft::graphpipe {

/// A branch of an item, divided before its item `split`. No branch: all are whole.
struct Split {
  int branch = -1;
  int split = 0;
};

/// Items [lo, hi) of a row.
struct RowPart {
  int row = 0;
  int lo = 0;
  int hi = 0;

  friend constexpr auto operator<=>(const RowPart&, const RowPart&) = default;
};

class BranchWays {
 public:
  /// The ways to run a part of a row before what comes after.
  using RowWays = std::function<const Front&(const RowPart& part, const After& after)>;

  /// `load`: of the problem, empty. `work`: before every place.
  BranchWays(const PartitionProblem& problem,
             const TreeRows& tree,
             StageLoad load,
             std::span<const double> work,
             WayMaker& maker,
             RowWays row_ways);

  /// Of all branches of the item, but for the end of one that `cut` leaves out and the beginning of
  /// one that `lead` leaves to do. It stays where it is.
  [[nodiscard]] const Front& of(const TreeItem& item, Split cut, Split lead, const After& after);

 private:
  [[nodiscard]] Front sets_of(const std::vector<RowPart>& branches, const After& after);
  [[nodiscard]] Front ranges_of(std::vector<RowPart> branches, const After& after);
  /// Branches together as one stage, or the only one as a row.
  [[nodiscard]] Front together(std::span<const RowPart> branches, const After& after);
  /// What a part costs, where nothing else is in its stage that it feeds.
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
