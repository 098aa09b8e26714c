#include "stagecraft/scheduler/planners/graphpipe/tree/tree_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "stagecraft/scheduler/planners/graphpipe/problem/stage_load.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/branch_ways.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/row_states.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/tree_rows.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/way_maker.h"

namespace stagecraft::graphpipe {
namespace {

constexpr int kMostSplits = 16;  // places at which `absorbing` may divide a branch

/// Returns the sum of work before every place, and in total.
std::vector<double> work_before(const PartitionProblem& problem) {
  std::vector<double> sums{0};
  for (const double work : least_work(problem)) {
    sums.push_back(sums.back() + work);
  }
  return sums;
}

class TreeSearch {
 public:
  TreeSearch(const PartitionProblem& problem,
             const TreeRows& tree,
             double limit,
             const TreeSearchOptions& options)
      : tree_(&tree),
        limit_(limit),
        absorbing_(options.absorbing),
        work_(work_before(problem)),
        graph_(neighbors_of(problem.operators, problem.edges)),
        load_(problem, graph_),
        maker_(problem, limit, options.least_in_flight),
        branches_(problem,
                  tree,
                  load_,
                  work_,
                  maker_,
                  [this](const RowPart& part, const After& after) -> const Front& {
                    return row_ways(part, after);
                  }) {}
  TreeSearch(const TreeSearch&) = delete;
  TreeSearch& operator=(const TreeSearch&) = delete;

  std::optional<Way> run() {
    const int root = static_cast<int>(tree_->rows.size()) - 1;
    const Front& front = row_ways({root, 0, tree_->rows.back().size()}, {});
    const auto best = std::ranges::min_element(front.ways(), {}, [](const Way& way) {
      return std::tuple(way.in_flight, way.devices, way.peak);
    });
    return best == front.ways().end() ? std::nullopt : std::optional(*best);
  }

  [[nodiscard]] const Pieces& pieces() const { return maker_.pieces(); }

 private:
  const TreeRow& row(int number) const { return tree_->rows[at(number)]; }

  /// Returns the ways to run a part of a row; computes all beginnings at once.
  const Front& row_ways(const RowPart& part, const After& after);
  void from_whole(RowStates& states, const TreeRow& row, int j);
  void from_cut(RowStates& states, const TreeRow& row, int j, Split cut);
  void from_lead(RowStates& states, const TreeRow& row, int j, Split lead);
  /// Makes stages of the load and of items before j.
  void stages_before(RowStates& states, const Front& from, const TreeRow& row, int j);
  /// Makes stages of the end of a branch of item j and of the load.
  void absorb(RowStates& states, const Front& from, const TreeRow& row, int j);
  /// Makes stages of item j, from its end, except for the part that `cut` leaves out. The beginning
  /// of one branch may remain to do.
  void open(RowStates& states, const Front& from, const TreeRow& row, int j, Split cut);
  /// Makes stages of a part of one branch.
  template <class To>
  void peel(const Front& from, int branch, int end, const To& to);

  /// Adds items [lo, hi) of a row to the load.
  void add(const TreeRow& row, int lo, int hi) { load_.add(row.begin_of(lo), row.begin_of(hi)); }
  void extend(const Front& from, Front& to, double left) { maker_.extend(from, to, left, load_); }
  /// Returns the work left for more devices. For a row within a row it is unknown: another row may
  /// follow.
  double left_in(const TreeRow& row, double work) const {
    return &row == &tree_->rows.back() ? work : 0;
  }
  int stride_of(int size) const { return (size + kMostSplits - 1) / kMostSplits; }

  const TreeRows* tree_;
  double limit_;
  bool absorbing_;
  std::vector<double> work_;  // sum before every place
  Neighbors graph_;
  StageLoad load_;
  WayMaker maker_;
  BranchWays branches_;
  std::map<std::array<int, 4>, std::vector<Front>> rows_;  // by row, hi and after
};

const Front& TreeSearch::row_ways(const RowPart& part, const After& after) {
  const auto& [number, lo, hi] = part;
  const std::array key{number, hi, after.in_flight, after.turns};
  if (const auto known = rows_.find(key); known != rows_.end()) {
    return known->second[at(lo)];
  }
  const TreeRow& row = this->row(number);
  RowStates states(*tree_, row, absorbing_);
  states.whole[at(hi)] = WayMaker::nothing_before(after);
  for (int j = hi; j >= 0; --j) {
    if (j < hi && absorbing_) {
      const TreeItem& item = row.items[at(j)];
      for (int b = 0; b < static_cast<int>(item.branches.size()); ++b) {
        for (int split = this->row(item.branches[at(b)]).size(); split >= 0; --split) {
          from_cut(states, row, j, {b, split});
        }
      }
      for (int b = 0; b < static_cast<int>(item.branches.size()); ++b) {
        for (int split = this->row(item.branches[at(b)]).size(); split > 0; --split) {
          from_lead(states, row, j, {b, split});
        }
      }
    }
    from_whole(states, row, j);
  }
  return rows_.emplace(key, std::move(states.whole)).first->second[at(lo)];
}

void TreeSearch::from_whole(RowStates& states, const TreeRow& row, int j) {
  const Front from = states.whole[at(j)];
  if (from.empty() || j == 0) {
    return;
  }
  stages_before(states, from, row, j);
  if (!row.items[at(j - 1)].branches.empty()) {
    open(states, from, row, j - 1, {});
  }
}

void TreeSearch::from_cut(RowStates& states, const TreeRow& row, int j, Split cut) {
  const Front from = states.cut[at(j)][at(cut.branch)][at(cut.split)];
  if (from.empty()) {
    return;
  }
  const TreeItem& item = row.items[at(j)];
  peel(from, item.branches[at(cut.branch)], cut.split, [&](int split) -> Front& {
    return states.cut[at(j)][at(cut.branch)][at(split)];
  });
  open(states, from, row, j, cut);
  for (int b = static_cast<int>(item.branches.size()) - 1; b >= 0; --b) {
    const TreeRow& branch = this->row(item.branches[at(b)]);
    add(branch, 0, b == cut.branch ? cut.split : branch.size());
  }
  stages_before(states, from, row, j);
  load_.shrink(0);
}

void TreeSearch::from_lead(RowStates& states, const TreeRow& row, int j, Split lead) {
  const Front from = states.lead[at(j)][at(lead.branch)][at(lead.split)];
  if (from.empty()) {
    return;
  }
  const int branch = row.items[at(j)].branches[at(lead.branch)];
  peel(from, branch, lead.split, [&](int split) -> Front& {
    return split == 0 ? states.whole[at(j)] : states.lead[at(j)][at(lead.branch)][at(split)];
  });
  add(this->row(branch), 0, lead.split);
  stages_before(states, from, row, j);
  load_.shrink(0);
}

template <class To>
void TreeSearch::peel(const Front& from, int branch, int end, const To& to) {
  const TreeRow& row = this->row(branch);
  const int stride = stride_of(row.size());
  if (row.flat) {
    for (int split = end - 1; split >= 0 && load_.within(limit_); --split) {
      add(row, split, split + 1);
      if (split % stride == 0) {
        extend(from, to(split), 0);
      }
    }
    load_.shrink(0);
    return;
  }
  for (int split = (end - 1) / stride * stride; split >= 0; split -= stride) {
    for (const Way& way : from.ways()) {
      for (const Way& part : row_ways({branch, split, end}, maker_.after(way)).ways()) {
        maker_.join(way, part, to(split));
      }
    }
  }
}

void TreeSearch::stages_before(RowStates& states, const Front& from, const TreeRow& row, int j) {
  const std::size_t base = load_.size();
  const auto left = [&](int item) { return left_in(row, work_[at(row.begin_of(item))]); };
  if (base > 0) {
    extend(from, states.whole[at(j)], left(j));
  }
  for (int i = j - 1; i >= 0 && load_.within(limit_); --i) {
    if (absorbing_ && load_.size() > 0) {
      absorb(states, from, row, i);
    }
    add(row, i, i + 1);
    extend(from, states.whole[at(i)], left(i));
  }
  load_.shrink(base);
}

void TreeSearch::absorb(RowStates& states, const Front& from, const TreeRow& row, int j) {
  const TreeItem& item = row.items[at(j)];
  const std::size_t base = load_.size();
  for (int b = 0; b < static_cast<int>(item.branches.size()); ++b) {
    if (item.like[at(b)] != b) {
      continue;  // an equal one is tried
    }
    const TreeRow& branch = this->row(item.branches[at(b)]);
    const int stride = stride_of(branch.size());
    for (int split = branch.size() - 1; split >= 0 && load_.within(limit_); --split) {
      add(branch, split, split + 1);
      if (split % stride == 0) {
        const double taken =
            work_[at(branch.begin_of(branch.size()))] - work_[at(branch.begin_of(split))];
        const double left = left_in(row, work_[at(item.end)] - taken);
        extend(from, states.cut[at(j)][at(b)][at(split)], left);
      }
    }
    load_.shrink(base);
  }
}

void TreeSearch::open(RowStates& states, const Front& from, const TreeRow& row, int j, Split cut) {
  const TreeItem& item = row.items[at(j)];
  const auto leave = [&](Split lead, Front& to) {
    for (const Way& way : from.ways()) {
      for (const Way& part : branches_.of(item, cut, lead, maker_.after(way)).ways()) {
        maker_.join(way, part, to);
      }
    }
  };
  leave({}, states.whole[at(j)]);
  if (!absorbing_) {
    return;
  }
  std::vector<char> seen(item.branches.size());
  for (int b = 0; b < static_cast<int>(item.branches.size()); ++b) {
    // Try one of equal branches. The branch that is cut differs from the others.
    if (b != cut.branch && std::exchange(seen[at(item.like[at(b)])], 1) != 0) {
      continue;
    }
    const int size = this->row(item.branches[at(b)]).size();
    const int stride = stride_of(size);
    for (int split = 1; split <= (b == cut.branch ? cut.split : size); ++split) {
      if (split % stride == 0 || split == size) {
        leave({b, split}, states.lead[at(j)][at(b)][at(split)]);
      }
    }
  }
}

}  // namespace

std::optional<Partition> tree_search(const PartitionProblem& problem,
                                     const SpTree& tree,
                                     double limit,
                                     const TreeSearchOptions& options) {
  const TreeRows rows = rows_of(tree, problem);
  PartitionProblem placed = by_place(problem, rows.operators);
  const auto answer = [&]() -> std::optional<Partition> {
    TreeSearch search(placed, rows, limit, options);
    const std::optional<Way> best = search.run();
    if (!best) {
      return std::nullopt;
    }
    std::vector<PartitionStage> stages = search.pieces().stages_of(best->piece);
    for (PartitionStage& stage : stages) {
      std::ranges::transform(stage.operators, stage.operators.begin(), [&](int place) {
        return rows.operators[at(place)];
      });
    }
    return settle(problem, std::move(stages));
  };
  // Without regard to memory there is less to compare, and often the answer fits all the same.
  placed.memory = std::numeric_limits<double>::infinity();
  auto found = answer();
  if (!found || found->peak <= problem.memory) {
    return found;
  }
  placed.memory = problem.memory;
  return answer();
}

}  // namespace stagecraft::graphpipe
