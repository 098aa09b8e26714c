/// WorkGraph holds the operators of a model and the values between them, on microbatches of one
/// size, for planners. It also computes the costs of stages of these operators.
///
/// It is made from the operators of a costs.json; joined operators are one operator here. The name
/// of an operator is its place 0..n-1, which is an order of the forward (WK-1). A value; any thread
/// may read. Units: seconds and bytes.
/// WK-1: an operator reads only operators before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// StageOperators holds the operators of every stage, ascending.
using StageOperators = std::vector<std::vector<int>>;

class WorkGraph {
 public:
  /// Edge is a value that passes between two operators.
  struct Edge {
    int producer = 0;
    int output = 0;  ///< number of the result; a stage that reads it twice receives it once
    int consumer = 0;
    double bytes = 0;
  };
  /// Result is a result with all its readers. A read with another number of bytes is a result of
  /// its own: an operator that only waits for another, without taking its value, reads 0 bytes.
  struct Result {
    int producer = 0;
    double bytes = 0;
    std::vector<int> consumers;  ///< ascending, each once
  };

  /// Returns the graph on microbatches of `samples`. Uses measured figures if they exist. Otherwise
  /// it uses the line through the two nearest sizes, or proportion if only one size was measured.
  /// Errors: UsageArgument for costs without operators, ids that do not ascend, a read of an
  /// operator that does not come before, parameters that are not listed, no samples.
  [[nodiscard]] static WorkGraph of(const Costs& costs, int samples);

  [[nodiscard]] int size() const { return static_cast<int>(operators_.size()); }
  [[nodiscard]] int samples() const { return samples_; }
  /// Returns whether the costs give the bytes that wait between I and W.
  [[nodiscard]] bool knows_waiting() const { return knows_waiting_; }
  /// Returns the operator's costs without `reads` and `parameters`, which are in edges() and
  /// parameters().
  [[nodiscard]] const OperatorCost& at(int op) const {
    return operators_[static_cast<std::size_t>(op)];
  }
  /// Returns the operator's ids in the costs: several if operators are joined.
  [[nodiscard]] std::span<const int> ids(int op) const {
    return ids_[static_cast<std::size_t>(op)];
  }
  /// Returns the edges by consumer, then producer.
  [[nodiscard]] std::span<const Edge> edges() const { return edges_; }
  /// Returns the results of edges(), by producer, then number of the result.
  [[nodiscard]] std::span<const Result> results() const { return results_; }
  /// Returns places in all_parameters(), ascending.
  [[nodiscard]] std::span<const int> parameters(int op) const {
    return parameters_[static_cast<std::size_t>(op)];
  }
  [[nodiscard]] std::span<const ParameterCost> all_parameters() const { return all_parameters_; }
  /// Returns the operators that read a result of `op` (preds: the operators whose results it
  /// reads); ascending, each once.
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

/// Returns by operator the longest path through the operators on which its inputs depend. `time`:
/// of an OperatorCost.
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

/// StageWork holds the costs of a set of operators as one stage.
struct StageWork {
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double update = 0;
  double kept = 0;
  double transient = 0;         ///< most at once beyond the kept bytes, over all operators
  double waiting = 0;           ///< between I and W
  double gradients = 0;         ///< part of `waiting`
  double input_transient = 0;   ///< most at once beyond the kept bytes, while I runs
  double weight_transient = 0;  ///< beyond the waiting bytes, while W runs
  double parameters = 0;        ///< bytes, each once
  double held = 0;              ///< of `parameters`, with gradients and optimizer state
  double trained = 0;           ///< of `parameters`, those that train
  double input = 0;

  [[nodiscard]] double backward() const { return backward_input + backward_weight; }
  /// Returns the bytes of the optimizer's state.
  [[nodiscard]] double states() const { return held - parameters - trained; }
};

/// Adds the bytes that the operator holds during the two halves of a backward. I goes back through
/// a stage and frees nothing until its end, while gradients for W add up. W frees memory operator
/// by operator.
/// Requires: called for the operators of a stage from the last to the first.
void add_halves(const OperatorCost& cost, StageWork& work);

/// Writes the bytes that the stage holds, without those that it receives.
void put_memory(const WorkGraph& graph,
                const StageWork& work,
                std::size_t stage,
                MemoryModel& memory);
/// Adds the bytes that the stage receives, which stay until the end of its backward.
void add_received(double bytes, std::size_t stage, MemoryModel& memory);

/// Returns the stages with the operators' ids of the costs.
[[nodiscard]] StageOperators ids_of(const WorkGraph& graph, const StageOperators& stages);

/// WorkGraphs makes each graph of one model once. It views the costs; one thread.
class WorkGraphs {
 public:
  explicit WorkGraphs(const Costs& costs) : costs_(&costs) {}

  /// Returns the graph on microbatches of so many samples; the reference stays valid. Errors: those
  /// of WorkGraph::of().
  [[nodiscard]] const WorkGraph& on(int samples);

 private:
  const Costs* costs_;
  std::map<int, WorkGraph> made_;  // by samples
};

/// Returns stages of consecutive operators. `ends`: by stage, one beyond its last operator.
[[nodiscard]] StageOperators consecutive_stages(std::span<const int> ends);

[[nodiscard]] StageWork work_of(const WorkGraph& graph, std::span<const int> operators);

/// Returns the seconds in which so many devices add up gradients of so many bytes around a ring of
/// such links.
[[nodiscard]] double all_reduce_seconds(double bytes, const Link& link, int devices);

/// Returns the durations of the stage's tasks on the device, for a stage that sends a gradient.
[[nodiscard]] Durations durations_of(const StageWork& work, const CostDevice& device);

/// Returns the graph of the stages: an edge for each passing result; parameters that several stages
/// use are tied. A stage that reads no other stage owes no gradient: the input half of its backward
/// does nothing.
/// Requires: every operator is in one stage. A cycle is representable (SG-2).
[[nodiscard]] StageGraph stage_graph_of(const WorkGraph& graph, const StageOperators& stages);

/// Returns the costs of these stages for the simulator; devices and links are those of `costs`. A
/// stage keeps the bytes that it receives until its backward, in addition to those that its
/// operators keep. If a stage owes no gradient, W takes the time of the whole backward, as in
/// settle_halves().
[[nodiscard]] Costs costs_of(const Costs& costs,
                             const WorkGraph& graph,
                             const StageOperators& stages);

}  // namespace stagecraft
