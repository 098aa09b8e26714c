/// StageGraph holds the stages of a model and the edges between them. A correct graph is a DAG;
/// validate() reports one that is not.
///
/// The compiler makes it from a module, a file's header or a command's option makes it from edges,
/// and chain() makes the usual pipeline. Rules, builders and the simulator read it. A value; any
/// thread may read.
/// SG-1: preds and succs mirror each other; an edge appears once, in ascending order of the other
///       end.
/// SG-2: a graph may hold a cycle, because a report must be able to name it. Code that walks the
///       graph calls topological_order() first.
/// SG-3: the copies of a stage are one chain of replica pairs; the n-th copy is in replica n.
/// SG-4: a stage may take several of a step's microbatches as one of its own. Stage s of size k has
///       M / k microbatches, numbered from 0; its microbatch j holds the step's microbatches j k to
///       (j + 1) k - 1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

/// TiedParameter is a parameter that several stages use. `reduced`: its gradients are summed over
/// the stages before an update.
struct TiedParameter {
  std::string name;
  std::vector<StageId> stages;
  bool reduced = false;
};

class StageGraph {
 public:
  using Edge = std::pair<int, int>;

  /// Returns a graph in which each stage feeds the next.
  [[nodiscard]] static StageGraph chain(int stages);
  /// Returns a graph with these edges.
  /// Errors: ScheduleParameter for a negative count or an edge that leaves [0, stages).
  [[nodiscard]] static StageGraph from_edges(int stages, const std::vector<Edge>& edges);

  [[nodiscard]] int size() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] std::span<const StageId> preds(StageId s) const { return nodes_[s.index()].preds; }
  [[nodiscard]] std::span<const StageId> succs(StageId s) const { return nodes_[s.index()].succs; }
  /// Returns all edges, by producer, then consumer.
  [[nodiscard]] std::vector<Edge> edges() const;
  /// Returns whether this is the pipeline 0 -> 1 -> ... without other edges.
  [[nodiscard]] bool is_chain() const;

  [[nodiscard]] const std::string& name(StageId s) const { return nodes_[s.index()].name; }
  void set_name(StageId s, std::string name) { nodes_[s.index()].name = std::move(name); }

  /// Returns whether the backward of `s` computes gradients for its inputs; false for sources until
  /// set.
  [[nodiscard]] bool needs_input_grad(StageId s) const {
    const Node& node = nodes_[s.index()];
    return node.needs_input_grad.value_or(!node.preds.empty());
  }
  void set_needs_input_grad(StageId s, bool yes) { nodes_[s.index()].needs_input_grad = yes; }
  /// Returns whether `s` has weights that train; true until set.
  [[nodiscard]] bool needs_weight_grad(StageId s) const {
    return nodes_[s.index()].needs_weight_grad;
  }
  void set_needs_weight_grad(StageId s, bool yes) { nodes_[s.index()].needs_weight_grad = yes; }
  /// Returns whether the stage has a backward task. A stage that needs neither gradient (a frozen
  /// prefix) has none.
  [[nodiscard]] bool has_backward(StageId s) const {
    return needs_input_grad(s) || needs_weight_grad(s);
  }
  /// Returns whether `consumer` owes `producer` a gradient.
  [[nodiscard]] bool sends_gradient(StageId consumer, StageId producer) const {
    return needs_input_grad(consumer) && has_backward(producer);
  }
  /// Stops the training of the weights of these stages and of their copies. The other stages'
  /// gradients follow from the edges.
  /// Errors: ScheduleParameter for a stage outside the graph.
  void freeze(const std::vector<int>& stages);
  /// Returns the stages whose weights do not train, ascending.
  [[nodiscard]] std::vector<int> frozen() const;
  /// Copies name and gradients of stage `m` of `model` to `s`.
  void describe_as(StageId s, const StageGraph& model, StageId m);

  /// Returns whether a backward task does nothing. That is so if its stage has no backward, or if
  /// the task is the half for a gradient that its stage does not need; then the other half does
  /// all. The I of a source does work until set_needs_input_grad() or freeze() says what its inputs
  /// need.
  [[nodiscard]] bool is_surplus(const Task& task) const;
  /// Returns whether the task is the last that uses the values kept by the forward of its stage and
  /// microbatch.
  [[nodiscard]] bool ends_backward(const Task& task) const;

  /// Returns the stages, producers before consumers; nothing if the graph has a cycle.
  [[nodiscard]] std::optional<std::vector<StageId>> topological_order() const;
  /// Returns the stages of one cycle in order, starting with its smallest; empty if there is none.
  [[nodiscard]] std::vector<StageId> find_cycle() const;
  /// Returns the number of stages on the longest path. Requires: acyclic.
  [[nodiscard]] int depth() const;

  void add_tied(TiedParameter tied) { tied_.push_back(std::move(tied)); }
  [[nodiscard]] const std::vector<TiedParameter>& tied() const { return tied_; }

  /// Declares that `pair.second` holds the next copy of `pair.first`'s weights, for another share
  /// of the microbatches. Pairs come in any order.
  /// Errors: ScheduleParameter for a stage outside the graph, for pairs in a circle, and for a
  /// stage that is the first or the second of two pairs.
  void set_replica_pairs(const std::vector<Edge>& pairs);
  /// Returns the pairs, chain by chain from its first copy on, ordered by first stage.
  [[nodiscard]] const std::vector<Edge>& replica_pairs() const { return replica_pairs_; }
  /// Returns the number of copies of the pipeline: 2 for schedules that run both ways, otherwise
  /// mostly 1.
  [[nodiscard]] int replicas() const { return replicas_; }
  /// Returns the copy of `s`; 0 if no pair names `s` second.
  [[nodiscard]] int replica_of(StageId s) const { return nodes_[s.index()].replica; }
  /// Returns how many of a step's `total` microbatches each copy takes.
  [[nodiscard]] int microbatches_per_replica(int total) const {
    return (total + replicas_ - 1) / replicas_;
  }

  /// Returns how many of the step's microbatches `s` takes as one (SG-4); 1 until set.
  [[nodiscard]] int microbatch_size(StageId s) const { return nodes_[s.index()].microbatch_size; }
  /// Sets the sizes, one per stage.
  /// Errors: ScheduleParameter unless there are as many sizes as stages, and for a size below 1.
  void set_microbatch_sizes(const std::vector<int>& sizes);
  /// Returns the sizes by stage; empty if all are 1.
  [[nodiscard]] std::vector<int> microbatch_sizes() const;
  /// Returns how many microbatches of its own `s` has in a step of `total`, rounded down.
  [[nodiscard]] int microbatches_of(StageId s, int total) const {
    return microbatches_per_replica(total) / microbatch_size(s);
  }

 private:
  struct Node {
    std::string name;
    std::optional<bool> needs_input_grad;  ///< absent: not set
    bool needs_weight_grad = true;
    int replica = 0;
    int microbatch_size = 1;
    std::vector<StageId> preds;
    std::vector<StageId> succs;
  };

  std::vector<Node> nodes_;
  std::vector<TiedParameter> tied_;
  std::vector<Edge> replica_pairs_;
  int replicas_ = 1;
};

}  // namespace stagecraft
