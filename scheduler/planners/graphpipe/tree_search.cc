#include "stagecraft/scheduler/planners/graphpipe/tree_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "stagecraft/scheduler/planners/graphpipe/front.h"
#include "stagecraft/scheduler/planners/graphpipe/stage_load.h"
#include "stagecraft/scheduler/planners/graphpipe/tree_rows.h"

namespace stagecraft::graphpipe {
namespace {

constexpr int kMostSubsets = 6;  // branches of which every set may be a stage
constexpr int kMostSplits = 16;  // places at which a branch may be divided by absorbing

/// What comes after a part of the graph.
struct After {
  int in_flight = 0;
  int turns = -1;
};

/// A branch of an item, divided before its item `split`. No branch: all are whole.
struct Split {
  int branch = -1;
  int split = 0;
};

/// The ways from within an item on: by branch and split.
using Splits = std::vector<std::vector<Front>>;

/// The ways to run what comes after every state of a row, from its end to its beginning. What is
/// left to do in a state:
///     whole[j]: the items before j
///     cut[j]:   those, and item j of which one branch ends early, for later stages have the rest
///     lead[j]:  those, and the beginning of one branch of item j, whose other parts are done
struct RowStates {
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

  std::vector<Front> whole;
  std::vector<Splits> cut, lead;
};

class TreeSearch {
 public:
  TreeSearch(const PartitionProblem& problem,
             const TreeRows& tree,
             double limit,
             const TreeSearchOptions& options)
      : problem_(&problem),
        tree_(&tree),
        limit_(limit),
        absorbing_(options.absorbing),
        any_in_flight_(!options.least_in_flight && std::isinf(problem.memory)),
        graph_(neighbours_of(problem.operators, problem.edges)),
        load_(problem, graph_) {
    for (const Variant& variant : problem.variants) {
      if (turns_.empty() || turns_.back() != variant.turns) {
        turns_.push_back(variant.turns);
      }
      turns_of_.push_back(static_cast<int>(turns_.size()) - 1);
    }
    // Where memory does not matter, ways differ by what is in flight after them by that alone.
    shifts_ = std::isinf(problem.memory) && turns_.size() == 1;
    work_.push_back(0);
    for (const double work : least_work(problem)) {
      work_.push_back(work_.back() + work);
    }
  }

  std::optional<Way> run() {
    const int root = static_cast<int>(tree_->rows.size()) - 1;
    const Front& front = row_ways(root, 0, tree_->rows.back().size(), {});
    const auto best = std::ranges::min_element(front.ways(), {}, [](const Way& way) {
      return std::tuple(way.in_flight, way.devices, way.peak);
    });
    return best == front.ways().end() ? std::nullopt : std::optional(*best);
  }

  [[nodiscard]] const Pieces& pieces() const { return pieces_; }

 private:
  const TreeRow& row(int number) const { return tree_->rows[at(number)]; }
  int begin_of(const TreeRow& row, int item) const {
    return item < row.size() ? row.items[at(item)].begin : row.items.back().end;
  }

  /// The ways to run items [lo, hi) of a row; for every lo at once.
  const Front& row_ways(int number, int lo, int hi, const After& after);
  void from_whole(RowStates& states, const TreeRow& row, int j);
  void from_cut(RowStates& states, const TreeRow& row, int j, Split cut);
  void from_lead(RowStates& states, const TreeRow& row, int j, Split lead);
  /// Stages of what the load holds and of items before j.
  void stages_before(RowStates& states, const Front& from, const TreeRow& row, int j);
  /// Stages of the end of a branch of item j and of what the load holds.
  void absorb(RowStates& states, const Front& from, const TreeRow& row, int j);
  /// Item j becomes stages of its own, from its end, but for what `cut` leaves out; the beginning
  /// of one branch may be left to do.
  void open(RowStates& states, const Front& from, const TreeRow& row, int j, Split cut);
  const Front& open_ways(const TreeItem& item, Split cut, Split lead, const After& after);
  Front sets_of(const std::vector<std::array<int, 3>>& branches, const After& after);
  Front ranges_of(std::vector<std::array<int, 3>> branches, const After& after);
  /// What items [lo, hi) of a row cost, where nothing else is in their stage that they feed.
  const StageSums& part_sums(const std::array<int, 3>& part);
  /// Branches together as one stage, or the only one as a row.
  Front together(std::span<const std::array<int, 3>> branches, const After& after);
  /// Stages of a part of one branch.
  template <class To>
  void peel(const Front& from, int branch, int end, const To& to);

  /// Adds items [lo, hi) of a row to the load.
  void add(const TreeRow& row, int lo, int hi) { add(begin_of(row, lo), begin_of(row, hi)); }
  void add(int begin, int end) {
    while (end-- > begin) {
      load_.add(end);
    }
  }

  /// What the load holds becomes a stage before every way of `from`; `left`: work before it.
  void extend(const Front& from, Front& to, double left);
  template <class Operators>
  void extend(const Front& from,
              Front& to,
              double left,
              std::span<const double> sums,
              const Operators& operators);
  /// Of the parts of branches that run at the same time.
  void beside(const Front& some, const Front& others, Front& to);
  /// `part` comes before a way whose stages it feeds.
  void join(const Way& way, const Way& part, int shift, Front& to);
  After after(const Way& way) const {
    return shifts_ ? After{0, way.turns} : After{way.in_flight, way.turns};
  }
  int shift_of(const Way& way) const { return shifts_ ? way.in_flight : 0; }
  /// Work that is left for more devices. Of a row in a row that is not known: another may follow.
  double left_in(const TreeRow& row, double work) const {
    return &row == &tree_->rows.back() ? work : 0;
  }
  int stride_of(int size) const { return (size + kMostSplits - 1) / kMostSplits; }

  const PartitionProblem* problem_;
  const TreeRows* tree_;
  double limit_;
  bool absorbing_;
  bool any_in_flight_;
  bool shifts_ = false;
  std::vector<StagePace> turns_;
  std::vector<int> turns_of_;  // by variant
  std::vector<double> work_;   // before every place, seconds times devices
  Neighbours graph_;
  StageLoad load_;
  Pieces pieces_;
  std::map<std::array<int, 3>, StageSums> part_sums_;
  std::map<std::array<int, 4>, std::vector<Front>> rows_;  // by row, hi and after
  std::map<std::array<int, 7>, Front> opened_;             // by first place, cut, lead and after
};

const Front& TreeSearch::row_ways(int number, int lo, int hi, const After& after) {
  const std::array key{number, hi, after.in_flight, after.turns};
  if (const auto known = rows_.find(key); known != rows_.end()) {
    return known->second[at(lo)];
  }
  const TreeRow& row = this->row(number);
  RowStates states(*tree_, row, absorbing_);
  states.whole[at(hi)].insert({.in_flight = after.in_flight, .turns = after.turns}, false);
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
      for (const Way& part : row_ways(branch, split, end, after(way)).ways()) {
        join(way, part, shift_of(way), to(split));
      }
    }
  }
}

void TreeSearch::stages_before(RowStates& states, const Front& from, const TreeRow& row, int j) {
  const std::size_t base = load_.size();
  const auto left = [&](int item) { return left_in(row, work_[at(begin_of(row, item))]); };
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
      continue;  // an equal one is taken
    }
    const TreeRow& branch = this->row(item.branches[at(b)]);
    const int stride = stride_of(branch.size());
    for (int split = branch.size() - 1; split >= 0 && load_.within(limit_); --split) {
      add(branch, split, split + 1);
      if (split % stride == 0) {
        const double taken =
            work_[at(begin_of(branch, branch.size()))] - work_[at(begin_of(branch, split))];
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
      for (const Way& part : open_ways(item, cut, lead, after(way)).ways()) {
        join(way, part, shift_of(way), to);
      }
    }
  };
  leave({}, states.whole[at(j)]);
  if (!absorbing_) {
    return;
  }
  std::vector<char> seen(item.branches.size());
  for (int b = 0; b < static_cast<int>(item.branches.size()); ++b) {
    // Of equal branches one is taken, and the one that is cut is not equal to the others.
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

const Front& TreeSearch::open_ways(const TreeItem& item,
                                   Split cut,
                                   Split lead,
                                   const After& after) {
  const std::array key{item.begin * problem_->operators + item.end,
                       cut.branch,
                       cut.split,
                       lead.branch,
                       lead.split,
                       after.in_flight,
                       after.turns};
  if (const auto known = opened_.find(key); known != opened_.end()) {
    return known->second;
  }
  std::vector<std::array<int, 3>> branches;  // row, lo, hi
  for (int b = 0; b < static_cast<int>(item.branches.size()); ++b) {
    const int branch = item.branches[at(b)];
    const int lo = b == lead.branch ? lead.split : 0;
    const int hi = b == cut.branch ? cut.split : row(branch).size();
    if (lo < hi) {
      branches.push_back({branch, lo, hi});
    }
  }
  Front ways = static_cast<int>(branches.size()) <= kMostSubsets
                   ? sets_of(branches, after)
                   : ranges_of(std::move(branches), after);
  return opened_.emplace(key, std::move(ways)).first->second;
}

Front TreeSearch::sets_of(const std::vector<std::array<int, 3>>& branches, const After& after) {
  const std::size_t sets = std::size_t{1} << branches.size();
  std::vector<Front> alone(sets);
  std::vector<Front> best(sets);  // by the branches that are done
  best[0].insert({.in_flight = after.in_flight, .turns = after.turns}, false);
  for (std::size_t set = 1; set < sets; ++set) {
    std::vector<std::array<int, 3>> members;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      if ((set >> b & 1) != 0) {
        members.push_back(branches[b]);
      }
    }
    alone[set] = together(members, after);
    const std::size_t lowest = set & (~set + 1);
    for (std::size_t part = set; part > 0; part = (part - 1) & set) {
      if ((part & lowest) != 0) {
        beside(alone[part], best[set ^ part], best[set]);
      }
    }
  }
  return std::move(best.back());
}

Front TreeSearch::ranges_of(std::vector<std::array<int, 3>> branches, const After& after) {
  std::ranges::stable_sort(branches, {}, [&](const std::array<int, 3>& b) {
    return work_[at(begin_of(row(b[0]), b[2]))] - work_[at(begin_of(row(b[0]), b[1]))];
  });
  std::vector<Front> best(branches.size() + 1);  // by how many are done
  best[0].insert({.in_flight = after.in_flight, .turns = after.turns}, false);
  for (std::size_t end = 1; end <= branches.size(); ++end) {
    for (std::size_t first = end; first-- > 0;) {
      const Front stage = together(std::span(branches).subspan(first, end - first), after);
      if (stage.empty() && first + 1 < end) {
        break;
      }
      beside(stage, best[first], best[end]);
    }
  }
  return std::move(best.back());
}

const StageSums& TreeSearch::part_sums(const std::array<int, 3>& part) {
  const auto known = part_sums_.find(part);
  if (known != part_sums_.end()) {
    return known->second;
  }
  add(row(part[0]), part[1], part[2]);
  const auto made = part_sums_.emplace(part, StageSums(load_.sums())).first;
  load_.shrink(0);
  return made->second;
}

Front TreeSearch::together(std::span<const std::array<int, 3>> branches, const After& after) {
  if (branches.size() == 1) {
    const auto& [branch, lo, hi] = branches.front();
    return row_ways(branch, lo, hi, after);
  }
  StageSums sums(problem_->variants.size());
  for (const std::array<int, 3>& part : branches) {
    sums += part_sums(part);
  }
  Front before;
  before.insert({.in_flight = after.in_flight, .turns = after.turns}, false);
  Front made;
  extend(before, made, 0, sums.view(), [&] {
    std::vector<int> operators;
    for (const auto& [branch, lo, hi] : branches) {
      for (int op = begin_of(row(branch), lo); op < begin_of(row(branch), hi); ++op) {
        operators.push_back(op);
      }
    }
    return operators;
  });
  return made;
}

void TreeSearch::extend(const Front& from, Front& to, double left) {
  extend(from, to, left, load_.sums(), [&] { return load_.operators(); });
}

template <class Operators>
void TreeSearch::extend(const Front& from,
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

void TreeSearch::join(const Way& way, const Way& part, int shift, Front& to) {
  Way made{.devices = way.devices + part.devices,
           .in_flight = part.in_flight + shift,
           .turns = part.turns,
           .peak = std::max(way.peak, part.peak)};
  if (made.devices <= problem_->devices && to.takes(made, any_in_flight_)) {
    made.piece = pieces_.join(way.piece, part.piece);
    to.insert(made, any_in_flight_);
  }
}

void TreeSearch::beside(const Front& some, const Front& others, Front& to) {
  for (const Way& one : some.ways()) {
    for (const Way& other : others.ways()) {
      // What comes before feeds both. Nothing done yet has the turns of what comes after.
      if (one.turns != other.turns && other.piece != Pieces::kNone) {
        continue;
      }
      Way made{.devices = one.devices + other.devices,
               .in_flight = std::max(one.in_flight, other.in_flight),
               .turns = one.turns,
               .peak = std::max(one.peak, other.peak)};
      if (made.devices <= problem_->devices && to.takes(made, any_in_flight_)) {
        made.piece = pieces_.join(one.piece, other.piece);
        to.insert(made, any_in_flight_);
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
  // Without looking at memory there is less to compare; often the answer fits all the same.
  placed.memory = std::numeric_limits<double>::infinity();
  auto found = answer();
  if (!found || found->peak <= problem.memory) {
    return found;
  }
  placed.memory = problem.memory;
  return answer();
}

}  // namespace stagecraft::graphpipe
