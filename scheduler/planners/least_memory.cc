#include "stagecraft/scheduler/planners/least_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/balance/cut_items.h"
#include "stagecraft/scheduler/planners/capslog/memory_cut.h"
#include "stagecraft/scheduler/planners/request/update_bytes.h"

namespace stagecraft {
namespace {

/// The numbers of neighbors, in the order of the forward, that move together.
constexpr int kRuns[] = {1, 2, 3, 5, 8, 13, 21, 40};

/// The number of moves between two looks at the time.
constexpr int kBetweenLooks = 8;

/// Moves operators between the stages of one cut to reduce its memory.
class MemoryDescent {
 public:
  MemoryDescent(const PlanRequest& request, const WorkGraph& graph, StageOperators start)
      : request_(request), graph_(graph), best_(std::move(start)), load_(*load_of(best_)) {}

  /// Ends when no move helps, everything fits, or `moves_left` is spent.
  void run(int& moves_left) {
    while (!fits() && moves_left > 0 && improve(moves_left)) {
    }
  }

  [[nodiscard]] const StageOperators& stages() const { return best_; }
  [[nodiscard]] double load() const { return load_; }

 private:
  [[nodiscard]] bool fits() const {
    const std::vector<double> bytes = *bytes_of(best_);
    return *std::ranges::max_element(bytes) <= request_.memory;
  }

  /// Returns the bytes of each stage's device; nothing for stages that wait for each other.
  [[nodiscard]] std::optional<std::vector<double>> bytes_of(const StageOperators& stages) const {
    const StageGraph stage_graph = stage_graph_of(graph_, stages);
    if (!stage_graph.topological_order()) {
      return std::nullopt;
    }
    const MemoryModel memory = costs_of(request_.costs, graph_, stages).stages.memory;
    const std::vector<int> in_flight = in_flight_counts(stage_graph);
    UpdateBytes update(static_cast<int>(stages.size()));
    std::vector<int> rows(stages.size());
    std::iota(rows.begin(), rows.end(), 0);
    update.add_ties(graph_, stage_graph, rows, std::vector<int>(stages.size(), 1));
    std::vector<double> bytes;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const int kept = std::min(in_flight[s], request_.batch / graph_.samples());
      bytes.push_back(memory.fixed[s] + std::max(kept * memory.activations[s] + memory.transient[s],
                                                 update.of(static_cast<int>(s)).all()));
    }
    return bytes;
  }

  /// Returns the load. Fuller devices weigh more, so that operators can pass on from one device to
  /// the next.
  [[nodiscard]] std::optional<double> load_of(const StageOperators& stages) const {
    constexpr double kPower = 12;
    const auto bytes = bytes_of(stages);
    if (!bytes) {
      return std::nullopt;
    }
    return std::accumulate(bytes->begin(), bytes->end(), 0.0, [&](double sum, double held) {
      return sum + std::pow(held / request_.memory, kPower);
    });
  }

  /// Makes every move that helps. Returns whether there was one.
  bool improve(int& moves_left) {
    bool better = false;
    const int stages = static_cast<int>(best_.size());
    for (int from = 0; from < stages; ++from) {
      for (const int to : targets_of(from)) {
        for (const int run : kRuns) {
          better = take(from, to, 0, run, moves_left) || better;
          better = take(from, to, size_of(from) - run, run, moves_left) || better;
        }
        for (int first = 1; first + 1 < size_of(from); ++first) {
          better = take(from, to, first, 1, moves_left) || better;
        }
      }
    }
    return better;
  }

  /// Returns the stages that exchange results with this one; all others, if an operator of it
  /// exchanges none.
  [[nodiscard]] std::set<int> targets_of(int from) const {
    std::vector<int> stage_of(static_cast<std::size_t>(graph_.size()));
    for (std::size_t s = 0; s < best_.size(); ++s) {
      for (const int op : best_[s]) {
        stage_of[static_cast<std::size_t>(op)] = static_cast<int>(s);
      }
    }
    std::set<int> targets;
    for (const int op : best_[static_cast<std::size_t>(from)]) {
      if (is_alone(op)) {
        for (int s = 0; s < static_cast<int>(best_.size()); ++s) {
          targets.insert(s);
        }
      }
      for (const std::span<const int> others : {graph_.preds(op), graph_.succs(op)}) {
        for (const int other : others) {
          targets.insert(stage_of[static_cast<std::size_t>(other)]);
        }
      }
    }
    targets.erase(from);
    return targets;
  }

  /// Returns whether no result enters or leaves the operator.
  [[nodiscard]] bool is_alone(int op) const {
    return graph_.preds(op).empty() && graph_.succs(op).empty();
  }

  [[nodiscard]] int size_of(int stage) const {
    return static_cast<int>(best_[static_cast<std::size_t>(stage)].size());
  }

  /// Moves `run` operators of a stage, starting at `first`, if that helps.
  bool take(int from, int to, int first, int run, int& moves_left) {
    if (moves_left == 0 || first < 0 || first + run > size_of(from) || run == size_of(from)) {
      return false;
    }
    const auto moving =
        std::span(best_[static_cast<std::size_t>(from)])
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(run));
    if (!touches(moving, best_[static_cast<std::size_t>(to)])) {
      return false;
    }
    --moves_left;
    if (moves_left % kBetweenLooks == 0 && !request_.proceeds("the least memory", true)) {
      moves_left = 0;
    }
    StageOperators moved = best_;
    std::vector<int>& source = moved[static_cast<std::size_t>(from)];
    std::vector<int>& target = moved[static_cast<std::size_t>(to)];
    const auto begin = source.begin() + first;
    target.insert(target.end(), begin, begin + run);
    source.erase(begin, begin + run);
    std::ranges::sort(target);
    const auto load = load_of(moved);
    if (!load || *load >= load_) {
      return false;
    }
    best_ = std::move(moved);
    load_ = *load;
    return true;
  }

  /// Returns whether a result passes between the operators and the stage, or none enters or leaves
  /// the operators.
  [[nodiscard]] bool touches(std::span<const int> operators, const std::vector<int>& stage) const {
    const auto in_stage = [&](int op) { return std::ranges::binary_search(stage, op); };
    return std::ranges::any_of(operators, [&](int op) {
      return std::ranges::any_of(graph_.preds(op), in_stage) ||
             std::ranges::any_of(graph_.succs(op), in_stage) || is_alone(op);
    });
  }

  const PlanRequest& request_;
  const WorkGraph& graph_;
  StageOperators best_;
  double load_;
};

/// Returns the cut that holds least for 1F1B on a row, and the cut of equal times.
std::vector<StageOperators> starts_of(const PlanRequest& request, const WorkGraph& graph) {
  std::vector<int> in_flight;
  for (int place = 0; place < request.devices; ++place) {
    in_flight.push_back(std::min(request.batch / graph.samples(), request.devices - place));
  }
  const MemoryCut least = memory_cut(OperatorMemory(graph, std::move(in_flight)), request.devices);
  return {consecutive_stages(least.ends),
          stages_of(balanced_cut(cut_items(graph, 1), request.devices))};
}

/// Orders the stages, producers first.
StageOperators in_order(const WorkGraph& graph, StageOperators stages) {
  std::ranges::sort(stages, {}, [](const std::vector<int>& stage) { return stage.front(); });
  const std::vector<StageId> order = *stage_graph_of(graph, stages).topological_order();
  StageOperators ordered;
  for (const StageId stage : order) {
    ordered.push_back(std::move(stages[stage.index()]));
  }
  return ordered;
}

}  // namespace

std::vector<Candidate> least_memory_candidates(const PlanRequest& request) {
  std::vector<Candidate> candidates;
  for (const int size : request.sizes()) {
    const WorkGraph graph = WorkGraph::of(request.costs, size);
    int moves_left = std::min(20'000, kMostLeastMemoryLooks / graph.size());
    std::optional<MemoryDescent> best;
    for (StageOperators& start : starts_of(request, graph)) {
      MemoryDescent descent(request, graph, std::move(start));
      descent.run(moves_left);
      if (!best || descent.load() < best->load()) {
        best.emplace(std::move(descent));
      }
    }
    StageOperators stages = in_order(graph, best->stages());
    const StageGraph stage_graph = stage_graph_of(graph, stages);
    candidates.push_back({.planner = "capslog",
                          .stages = std::move(stages),
                          .microbatch_size = size,
                          .stage_sizes = {},
                          .schedule = one_f_one_b(stage_graph, request.batch / size).to_list(),
                          .schedule_name = stage_graph.is_chain() ? "1f1b" : "dag-1f1b"});
  }
  return candidates;
}

}  // namespace stagecraft
