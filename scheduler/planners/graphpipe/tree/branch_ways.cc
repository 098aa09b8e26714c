#include "stagecraft/scheduler/planners/graphpipe/tree/branch_ways.h"

#include <algorithm>
#include <utility>

namespace stagecraft::graphpipe {
namespace {

constexpr int kMostSubsets = 6;  // with more branches, not every set may be a stage

}  // namespace

BranchWays::BranchWays(const PartitionProblem& problem,
                       const TreeRows& tree,
                       StageLoad load,
                       std::span<const double> work,
                       WayMaker& maker,
                       RowWays row_ways)
    : problem_(&problem),
      tree_(&tree),
      load_(std::move(load)),
      work_(work),
      maker_(&maker),
      row_ways_(std::move(row_ways)) {}

const Front& BranchWays::of(const TreeItem& item, Split cut, Split lead, const After& after) {
  const std::array key{item.begin * problem_->operators + item.end,
                       cut.branch,
                       cut.split,
                       lead.branch,
                       lead.split,
                       after.in_flight,
                       after.turns};
  if (const auto known = known_.find(key); known != known_.end()) {
    return known->second;
  }
  std::vector<RowPart> branches;
  for (int b = 0; b < static_cast<int>(item.branches.size()); ++b) {
    const int branch = item.branches[at(b)];
    const int lo = b == lead.branch ? lead.split : 0;
    const int hi = b == cut.branch ? cut.split : tree_->rows[at(branch)].size();
    if (lo < hi) {
      branches.push_back({branch, lo, hi});
    }
  }
  Front ways = static_cast<int>(branches.size()) <= kMostSubsets
                   ? sets_of(branches, after)
                   : ranges_of(std::move(branches), after);
  return known_.emplace(key, std::move(ways)).first->second;
}

Front BranchWays::sets_of(const std::vector<RowPart>& branches, const After& after) {
  const std::size_t sets = std::size_t{1} << branches.size();
  std::vector<Front> alone(sets);
  std::vector<Front> best(sets);  // by the set of branches done
  best[0] = WayMaker::nothing_before(after);
  for (std::size_t set = 1; set < sets; ++set) {
    std::vector<RowPart> members;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      if ((set >> b & 1) != 0) {
        members.push_back(branches[b]);
      }
    }
    alone[set] = together(members, after);
    const std::size_t lowest = set & (~set + 1);
    for (std::size_t part = set; part > 0; part = (part - 1) & set) {
      if ((part & lowest) != 0) {
        maker_->beside(alone[part], best[set ^ part], best[set]);
      }
    }
  }
  return std::move(best.back());
}

Front BranchWays::ranges_of(std::vector<RowPart> branches, const After& after) {
  std::ranges::stable_sort(branches, {}, [&](const RowPart& part) {
    const TreeRow& row = tree_->rows[at(part.row)];
    return work_[at(row.begin_of(part.hi))] - work_[at(row.begin_of(part.lo))];
  });
  std::vector<Front> best(branches.size() + 1);  // by the number of branches done
  best[0] = WayMaker::nothing_before(after);
  for (std::size_t end = 1; end <= branches.size(); ++end) {
    for (std::size_t first = end; first-- > 0;) {
      const Front stage = together(std::span(branches).subspan(first, end - first), after);
      if (stage.empty() && first + 1 < end) {
        break;
      }
      maker_->beside(stage, best[first], best[end]);
    }
  }
  return std::move(best.back());
}

const StageSums& BranchWays::sums_of(const RowPart& part) {
  const auto known = sums_.find(part);
  if (known != sums_.end()) {
    return known->second;
  }
  const TreeRow& row = tree_->rows[at(part.row)];
  load_.add(row.begin_of(part.lo), row.begin_of(part.hi));
  const auto made = sums_.emplace(part, StageSums(load_.sums())).first;
  load_.shrink(0);
  return made->second;
}

Front BranchWays::together(std::span<const RowPart> branches, const After& after) {
  if (branches.size() == 1) {
    return row_ways_(branches.front(), after);
  }
  StageSums sums(problem_->variants.size());
  for (const RowPart& part : branches) {
    sums += sums_of(part);
  }
  Front made;
  maker_->extend(WayMaker::nothing_before(after), made, 0, sums.view(), [&] {
    std::vector<int> operators;
    for (const RowPart& part : branches) {
      const TreeRow& row = tree_->rows[at(part.row)];
      for (int op = row.begin_of(part.lo); op < row.begin_of(part.hi); ++op) {
        operators.push_back(op);
      }
    }
    return operators;
  });
  return made;
}

}  // namespace stagecraft::graphpipe
