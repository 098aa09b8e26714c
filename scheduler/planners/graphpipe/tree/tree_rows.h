/// TreeRows is a tree in the form that the search walks: rows of items. An item is an operator, or
/// branches, each of which is a row.
///
/// It is made from an SpTree. The place of an operator in it, from left to right, is the operator's
/// name, so every item and every row is a range of places. A value.
#pragma once

#include <utility>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition_problem.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/sp_tree.h"

namespace stagecraft::graphpipe {

struct TreeItem {
  int begin = 0, end = 0;     ///< places of its operators
  std::vector<int> branches;  ///< rows; empty: one operator
  /// By branch: the first branch with the same operators in the same form.
  std::vector<int> like;
};

struct TreeRow {
  std::vector<TreeItem> items;
  bool flat = true;  ///< operators only

  [[nodiscard]] int size() const { return static_cast<int>(items.size()); }
  /// Returns the place of an item's first operator; for the item after the last, the place after
  /// all of them.
  [[nodiscard]] int begin_of(int item) const {
    return item < size() ? items[at(item)].begin : items.back().end;
  }
};

struct TreeRows {
  std::vector<TreeRow> rows;   ///< the last is the whole tree
  std::vector<int> operators;  ///< by place
};

[[nodiscard]] TreeRows rows_of(const SpTree& tree, const PartitionProblem& problem);

/// Returns the problem with its operators named by their place.
[[nodiscard]] PartitionProblem by_place(const PartitionProblem& problem,
                                        const std::vector<int>& operators);

}  // namespace stagecraft::graphpipe
