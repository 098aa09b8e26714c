/// WorkGraph: the operators of a model and what passes between them, on microbatches of one size,
/// as planners look at them; and what stages made of them cost.
///
/// Made from the operators of a costs.json; those that are joined are one here. Operators are
/// called by their place 0..n-1, which is an order of the forward (WK-1). A value; any thread may
/// read. Units: seconds and bytes.
/// WK-1: an operator reads operators before it only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// The operators of every stage, ascending.
using StageOperators = std::vector<std::vector<int>>;

class WorkGraph {
 public:
  /// A result that passes between two operators.
  struct Edge {
    int producer = 0;
    int output = 0;  ///< which of its results: one that a stage reads twice passes once
    int consumer = 0;
    double bytes = 0;
  };
  /// A result with all that read it. A read that says other bytes is one of its own: who waits for
  /// an operator without taking what it made reads 0.
  struct Result {
    int producer = 0;
    double bytes = 0;
    std::vector<int> consumers;  ///< ascending, each once
  };

  /// On microbatches of so many samples: measured figures where there are some, else on the line
  /// through the two nearest; in proportion where only one size was measured.
  /// Errors: UsageArgument for costs without operators, ids that do not ascend, a read of an
  ///         operator that does not come before, parameters that are not listed, no samples.
  [[nodiscard]] static WorkGraph of(const Costs& costs, int samples);

  [[nodiscard]] int size() const { return static_cast<int>(operators_.size()); }
  [[nodiscard]] int samples() const { return samples_; }
  /// Whether the costs say what waits between I and W.
  [[nodiscard]] bool knows_waiting() const { return knows_waiting_; }
  /// What costs say of `reads` and `parameters` is in edges() and parameters().
  [[nodiscard]] const OperatorCost& at(int op) const {
    return operators_[static_cast<std::size_t>(op)];
  }
  /// Their ids in the costs: several where they are joined.
  [[nodiscard]] std::span<const int> ids(int op) const {
    return ids_[static_cast<std::size_t>(op)];
  }
  /// By consumer, then producer.
  [[nodiscard]] std::span<const Edge> edges() const { return edges_; }
  /// Those of edges(), by producer, then which of its results.
  [[nodiscard]] std::span<const Result> results() const { return results_; }
  /// Places in all_parameters(), ascending.
  [[nodiscard]] std::span<const int> parameters(int op) const {
    return parameters_[static_cast<std::size_t>(op)];
  }
  [[nodiscard]] std::span<const ParameterCost> all_parameters() const { return all_parameters_; }
  /// Operators that read a result of `op`, or whose result it reads; ascending, each once.
  [[nodiscard]] std::span<const int> succs(int op) const {
    return succs_[static_cast<std::size_t>(op)];
  }
  [[nodiscard]] std::span<const int> preds(int op) const {
    return preds_[static_cast<std::size_t>(op)];
  }

 private:
  void add_operator(const std::string& name);
  void add_figures(const OperatorCost& figures);
  void add_edge(const Edge& edge);
  void list_results();

  std::vector<OperatorCost> operators_;
  std::vector<std::vector<int>> ids_;
  std::vector<Edge> edges_;
  std::vector<Result> results_;
  std::vector<std::vector<int>> parameters_;
  std::vector<ParameterCost> all_parameters_;
  std::vector<std::vector<int>> preds_, succs_;
  int samples_ = 1;
  bool knows_waiting_ = false;
};

/// By operator, the longest way through those before it on which what it reads depends. `time`: of
/// an OperatorCost.
template <class Time>
[[nodiscard]] std::vector<double> longest_before(const WorkGraph& graph, Time&& time) {
  std::vector<double> before(static_cast<std::size_t>(graph.size()), 0.0);
  for (int op = 0; op < graph.size(); ++op) {
    for (const int pred : graph.preds(op)) {
      double& here = before[static_cast<std::size_t>(op)];
      here = std::max(here, before[static_cast<std::size_t>(pred)] + time(graph.at(pred)));
    }
  }
  return before;
}

/// What a set of operators costs as one stage.
struct StageWork {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double update = 0;
  double kept = 0;
  double transient = 0;         ///< most at once beyond what is kept, whichever operator runs
  double waiting = 0;           ///< between I and W
  double gradients = 0;         ///< part of it
  double input_transient = 0;   ///< most at once beyond what is kept, while I runs
  double weight_transient = 0;  ///< beyond what waits, while W runs
  double parameters = 0;        ///< bytes, each once
  double held = 0;              ///< of them, with gradients and what the optimizer keeps
  double input = 0;

  [[nodiscard]] double backward() const { return backward_input + backward_weight; }
};

/// Adds what the operator holds of the two halves of a backward. I goes back through a stage and
/// frees nothing until its end, while gradients for W add up; W frees operator by operator.
/// Requires: called for the operators of a stage from the last to the first.
void add_halves(const OperatorCost& cost, StageWork& work);

/// Puts down what the stage holds, but for what it receives.
void put_memory(const WorkGraph& graph,
                const StageWork& work,
                std::size_t stage,
                MemoryModel& memory);
/// Adds what the stage receives, which stays until the end of its backward.
void add_received(double bytes, std::size_t stage, MemoryModel& memory);

/// The stages by the operators' ids in the costs.
[[nodiscard]] StageOperators ids_of(const WorkGraph& graph, const StageOperators& stages);

/// The graphs of one model, each made once. Views the costs; one thread.
class WorkGraphs {
 public:
  explicit WorkGraphs(const Costs& costs) : costs_(&costs) {}

  /// On microbatches of so many samples; it stays where it is. Errors: those of WorkGraph::of().
  [[nodiscard]] const WorkGraph& on(int samples);

 private:
  const Costs* costs_;
  std::map<int, WorkGraph> made_;  // by samples
};

/// Stages of consecutive operators. `ends`: by stage, one beyond its last.
[[nodiscard]] StageOperators consecutive_stages(std::span<const int> ends);

[[nodiscard]] StageWork work_of(const WorkGraph& graph, std::span<const int> operators);

/// Seconds in which so many devices add up gradients of so many bytes around a ring of such links.
[[nodiscard]] double all_reduce_seconds(double bytes, const Link& link, int devices);

/// What its tasks take on such a device, where a gradient leaves its inputs.
[[nodiscard]] Durations durations_of(const StageWork& work, const CostDevice& device);

/// The stages' own graph: an edge where a result passes, parameters that several use tied. A stage
/// that reads of no other owes no gradient: the input half of its backward does nothing.
/// Requires: every operator is in one stage. A cycle is representable (SG-2).
[[nodiscard]] StageGraph stage_graph_of(const WorkGraph& graph, const StageOperators& stages);

/// What these stages cost, for the simulator; device and links are those of `costs`. A stage keeps
/// what it receives until its backward, beside what its operators keep. If a stage owes no
/// gradient, W takes the time of the whole backward, as settle_halves() has it.
[[nodiscard]] Costs costs_of(const Costs& costs,
                             const WorkGraph& graph,
                             const StageOperators& stages);

}  // namespace stagecraft
