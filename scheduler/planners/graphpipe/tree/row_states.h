/// RowStates holds the progress of the search over trees (tree_search.h) within a row, and the ways
/// to run everything after each state.
///
/// The remaining work of a state:
///     whole[j]: the items before j
///     cut[j]:   those, and item j without the end of one branch, which later stages hold
///     lead[j]:  those, and the beginning of one branch of item j, whose other parts are done
/// A value; one thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/tree/front.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/tree_rows.h"

namespace stagecraft::graphpipe {

struct RowStates {
  /// `absorbing`: branches may be divided.
  RowStates(const TreeRows& tree, const TreeRow& row, bool absorbing)
      : whole(at(row.size() + 1)), cut(at(row.size())), lead(at(row.size())) {
    for (int j = 0; absorbing && j < row.size(); ++j) {
      for (const int branch : row.items[at(j)].branches) {
        const int size = tree.rows[at(branch)].size();
        cut[at(j)].emplace_back(at(size + 1));
        lead[at(j)].emplace_back(at(size + 1));
      }
    }
  }

  /// Splits holds the ways from a place within an item on, by branch and split.
  using Splits = std::vector<std::vector<Front>>;

  std::vector<Front> whole;
  std::vector<Splits> cut, lead;
};

}  // namespace stagecraft::graphpipe
