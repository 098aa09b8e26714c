/// TrainingDag is one step as a graph: the chunks of all stages for all microbatches, the transfers
/// and collectives of ranks, and the edges between them.
///
/// build_dag() makes it, the directives of a strategy change it (directives.h), and the passes of
/// apply.h finish it. Lowering turns the result into lists, and `stagecraft dag show` draws it. A
/// value of one thread.
///
///     0F0 --> send ..(tensor).. receive --> 1F0        0F0 --> 0B0 --> all_reduce --> update
///
/// DG-1: a data edge between nodes on different ranks is replaced by Send and Receive, with no edge
///      between the two.
/// DG-2: a rank list stands for ranks that run the same nodes, each on its own samples. Two lists
///      of one DAG have no rank in common.
/// DG-3: collectives gate nothing but updates, votes and the nodes that need their result.
/// DG-4: copies share the same of all stages of a tie. The i-th ranks, ascending, that have these
///      stages then have the same shard of the tied parameters.
/// Source: Piper's intermediate form.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/dag/dag_source.h"
#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/microbatch_range.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

enum class DagKind : std::uint8_t {
  Forward,
  Backward,
  Input,   ///< the half of a backward that computes gradients of inputs
  Weight,  ///< the half that computes gradients of weights
  Send,
  Receive,
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Update,
  Vote,
};

/// Returns "forward", "all_reduce", ...
[[nodiscard]] std::string_view to_string(DagKind kind);
[[nodiscard]] constexpr bool computes(DagKind kind) {
  return kind <= DagKind::Weight;
}
[[nodiscard]] constexpr bool is_transfer(DagKind kind) {
  return kind == DagKind::Send || kind == DagKind::Receive;
}
[[nodiscard]] constexpr bool is_collective(DagKind kind) {
  return kind >= DagKind::AllReduce && kind <= DagKind::AllToAll;
}

inline constexpr int kNone = -1;

/// The positions of streams in TrainingDag::streams start with the compute stream.
inline constexpr int kComputeStream = 0;

struct DagNode {
  DagKind kind = DagKind::Forward;
  StageId stage{kNone};          ///< all but votes, and sums over stages
  int chunk = kNone;             ///< computing nodes, and the nodes that serve one of them
  Microbatch microbatch{kNone};  ///< likewise; of the stage's own size
  int place = kNone;             ///< position in TrainingDag::places
  int stream = kComputeStream;   ///< position in TrainingDag::streams
  EdgeId tensor{kNone};          ///< Send, Receive
  int peer = kNone;              ///< Send, Receive: the node at the other end
  bool gradient = false;         ///< Send, Receive: it moves a gradient
  int bucket = kNone;            ///< Update, collectives over copies: in TrainingDag::buckets
  int tie = kNone;               ///< AllReduce of a tie: position in TrainingDag::ties
  int overlap = kNone;           ///< equal for the members of a group of an order
  bool ordered = false;          ///< computing nodes: an order names it
  std::optional<MicrobatchRange> part;  ///< Send, Receive between stages of different sizes
  /// AllGather before a task, AllToAll: the kind of the task.
  std::optional<DagKind> serves;
  bool returns = false;  ///< AllToAll: it brings samples back to their ranks, after the task

  /// Returns the task that a computing node is a part of.
  [[nodiscard]] Task task() const;
};

struct DagEdge {
  int from = 0, to = 0;                 ///< nodes
  bool data = true;                     ///< false: order alone
  EdgeId tensor{kNone};                 ///< of a data edge between stages
  std::optional<MicrobatchRange> part;  ///< as in DagNode
};

struct TrainingDag {
  std::vector<DagNode> nodes;
  std::vector<DagEdge> edges;
  std::vector<std::vector<Rank>> places;  ///< rank lists
  std::vector<std::string> streams{"compute"};
  std::vector<DagBucket> buckets;  ///< by their first stage, then chunk, as they train
  DagSource source;
  int microbatches = 1;  ///< of the step, the smallest that a stage has
  bool training = true;

  [[nodiscard]] DagNode& node(int n) { return nodes[static_cast<std::size_t>(n)]; }
  [[nodiscard]] const DagNode& node(int n) const { return nodes[static_cast<std::size_t>(n)]; }
  [[nodiscard]] int size() const { return static_cast<int>(nodes.size()); }

  int add(const DagNode& node);
  void connect(int from, int to, bool data = true);
  /// Returns the number of the stream. Adds the stream if it is new.
  [[nodiscard]] int stream_named(const std::string& name);
  [[nodiscard]] const DagChunk& chunk_of(const DagNode& node) const {
    return source.chunks[node.stage.index()][static_cast<std::size_t>(node.chunk)];
  }
  /// Returns whether a computing node does nothing (StageGraph::is_surplus).
  [[nodiscard]] bool is_surplus(const DagNode& node) const;
  /// Returns the number of the node's microbatch in a schedule, where each replica of the pipeline
  /// counts from 0 (LA-1). Requires: the node has a microbatch.
  [[nodiscard]] int microbatch_in_schedule(const DagNode& node) const;
  /// Returns how many nodes have this kind.
  [[nodiscard]] std::size_t count(DagKind kind) const;
};

/// Returns "0F3", "0F3.1" for a chunk of several, "send 0F3 to stage 1", "all_reduce of stage 0",
/// "all_reduce of stages 0, 2 over [0,1]" for copies in the schedule,
/// "all_gather of stage 0 for F3", "vote". Microbatches have their numbers in the schedule.
[[nodiscard]] std::string to_string(const TrainingDag& dag, int node);

/// Meeting names what a node is a part of: nodes of one meeting are one collective, on all rank
/// lists whose stages are copies in the schedule, or share a parameter. Copies in the schedule meet
/// for microbatches of one number in their replicas.
struct Meeting {
  DagKind kind = DagKind::AllReduce;
  int tie = kNone, bucket = kNone, microbatch = kNone;
  std::optional<DagKind> serves;
  bool returns = false;
  int alone = kNone;  ///< the node, if it meets none

  friend auto operator<=>(const Meeting&, const Meeting&) = default;
};
[[nodiscard]] Meeting meeting_of(const TrainingDag& dag, int node);

/// Returns the nodes that are one collective with this one, itself included, ascending. Requires: a
/// collective. Cost: linear in the nodes.
[[nodiscard]] std::vector<int> members_of(const TrainingDag& dag, int node);
/// Returns the ranks of all its members, ascending.
[[nodiscard]] std::vector<Rank> ranks_of_members(const TrainingDag& dag, int node);

/// Returns the first of the nodes that is placed on other ranks than these; kNone if there is none.
[[nodiscard]] int first_elsewhere(const TrainingDag& dag,
                                  const std::vector<int>& nodes,
                                  const std::vector<Rank>& ranks);

/// Returns the ranks of a rank list: "[0,2]".
[[nodiscard]] std::string place_text(const TrainingDag& dag, int place);

/// DagAdjacency holds the edges of each node. It views the DAG, so make it once the DAG no longer
/// changes.
class DagAdjacency {
 public:
  explicit DagAdjacency(const TrainingDag& dag);

  /// Both return numbers of edges.
  [[nodiscard]] std::span<const int> incoming(int node) const { return of(in_begin_, in_, node); }
  [[nodiscard]] std::span<const int> outgoing(int node) const { return of(out_begin_, out_, node); }

 private:
  [[nodiscard]] static std::span<const int> of(const std::vector<int>& begin,
                                               const std::vector<int>& list,
                                               int node) {
    const auto n = static_cast<std::size_t>(node);
    return std::span(list).subspan(static_cast<std::size_t>(begin[n]),
                                   static_cast<std::size_t>(begin[n + 1] - begin[n]));
  }

  std::vector<int> in_begin_, in_, out_begin_, out_;
};

/// Returns the nodes, each after all nodes that it needs. Of several possible nodes, the first that
/// became possible is next. Returns fewer than all if the graph has a cycle. A Receive needs its
/// Send.
[[nodiscard]] std::vector<int> topological_order(const TrainingDag& dag, const DagAdjacency& edges);

/// Returns the nodes of a short cycle in order; empty if there is none. A Receive needs its Send.
[[nodiscard]] std::vector<int> find_cycle(const TrainingDag& dag);

}  // namespace stagecraft
