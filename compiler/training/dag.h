/// StepDag is one step of training as a graph of chunks and transfers.
///
/// It is built from a program and the tasks of a schedule. `place` and `order` are directives on
/// it; `lower` turns it into a plan. Nodes are only added. Edges carry data or only order.
///
/// D-1: a data edge between compute nodes of different ranks is replaced by Send and Receive, with
///      no edge between the two.
/// Source: the Piper system's intermediate form, in the part that a pipeline needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/microbatch_range.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

enum class StepNodeKind : std::uint8_t { Compute, Send, Receive, Reduce, Tie, Vote, Update };

struct StepNode {
  StepNodeKind kind = StepNodeKind::Compute;
  Task task;                 ///< Compute; the stage, for Update
  std::optional<Rank> rank;  ///< set by place
  EdgeId edge;               ///< Send, Receive: the edge of the transferred tensor
  Rank peer;                 ///< Send, Receive
  int group = -1;            ///< Reduce: the number of the replica group; Tie: the number of the
                             ///< tie
  /// Send, Receive between stages of different microbatch sizes: the transferred part of the step's
  /// microbatches.
  std::optional<MicrobatchRange> part;
  int overlap = -1;  ///< Compute: equal for the tasks of one overlap group of a row; set by order
};

struct StepEdge {
  int from = 0, to = 0;                 ///< nodes
  bool data = true;                     ///< false: order only
  EdgeId edge{-1};                      ///< the tensor, for a data edge between stages
  std::optional<MicrobatchRange> part;  ///< as in StepNode
};

struct StepDag {
  std::vector<StepNode> nodes;
  std::vector<StepEdge> edges;
  /// The tensors that can cross, by EdgeId: activations, gradients, then results of an evaluation.
  std::vector<PlanEdge> tensors;
  std::vector<ReplicaGroup> replica_groups;  ///< their ranks are set by place
  std::vector<Tie> ties;                     ///< likewise
  /// By EdgeId: how many tensors of the driver are joined into one for the stage; 1 for all other
  /// edges.
  std::vector<int> driver_parts;
  int microbatches = 1;
  int losses = 1;  ///< as in Plan
  bool training = true;

  /// Returns a readable list of nodes and edges.
  [[nodiscard]] std::string text() const;
};

/// Makes compute nodes for every task of the schedule (forwards only if not `training`), data edges
/// between them, and in training one Update per stage after all its backwards.
/// Requires: the program is laid out for the schedule's replicas, whose tasks carry the step's
///           microbatches, and for its sizes of microbatches; no stages of different sizes that
///           feed each other are placed on one rank.
[[nodiscard]] StepDag build_training_dag(const CompiledProgram& program,
                                         const Schedule& schedule,
                                         bool training);

/// Directive: puts every node on the rank of its stage and makes transfers explicit (D-1). In
/// training it adds a Vote per rank, and before it one Reduce per replica group and then one Tie
/// per tie with a stage on that rank.
void place(StepDag& dag, const std::vector<Rank>& rank_of_stage);

/// Directive: makes the tasks of a row run in the order of the row, and marks those of an overlap
/// group as one group.
void order(StepDag& dag, const Schedule& schedule);

}  // namespace stagecraft
