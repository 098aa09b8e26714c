/// TreeRows: a tree as the search walks it: rows of items, and an item is an operator or branches,
/// each a row again.
///
/// Made of an SpTree. Operators are called by their place in it from left to right, so that every
/// item is a range of places, and a row too. A value.
#pragma once

#include <utility>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/partition.h"
#include "stagecraft/scheduler/planners/graphpipe/sp_tree.h"

namespace stagecraft::graphpipe {

struct TreeItem {
  int begin = 0, end = 0;     ///< places of its operators
  std::vector<int> branches;  ///< rows; none: one operator
  /// By branch, the first branch that is like it: the same operators in the same form.
  std::vector<int> like;
};

struct TreeRow {
  std::vector<TreeItem> items;
  bool flat = true;  ///< operators only

  [[nodiscard]] int size() const { return static_cast<int>(items.size()); }
  /// The place of an item's first operator; of the item behind the last: behind them all.
  [[nodiscard]] int begin_of(int item) const {
    return item < size() ? items[at(item)].begin : items.back().end;
  }
};

struct TreeRows {
  std::vector<TreeRow> rows;   ///< the last is the whole
  std::vector<int> operators;  ///< by place
};

[[nodiscard]] TreeRows rows_of(const SpTree& tree, const PartitionProblem& problem);

/// The problem with its operators called by their place.
[[nodiscard]] PartitionProblem by_place(const PartitionProblem& problem,
                                        const std::vector<int>& operators);

}  // namespace stagecraft::graphpipe
