/// Plan holds the instruction lists of all ranks, lowered from a program and a schedule. It is
/// plain data that prints, compares and is verified before anything runs. It names ranks, never
/// workers or hosts.
///
/// P-1: dependencies are ids of instructions of the same rank, never positions.
/// P-2: a stream is an in-order queue; between streams only `waits` order instructions. Tasks of
///      one overlap group are the exception: their blocks (receives, run, sends) may be issued in
///      any order, and none waits for another.
/// P-3: every Send has one Recv of the same edge and microbatch at its peer, and vice versa.
///      Between stages of different microbatch sizes parts cross. A part is named by the first of
///      the step's microbatches in it.
/// P-4: every slot that is written is freed exactly once: after all its users are over, and before
///      its next writer begins.
/// P-5: run in their order, with sends that never wait, the lists cannot deadlock.
/// P-6: an instruction waits only for earlier ones of its rank. The instruction that fills a slot
///      is over before another reads it.
/// P-7: a training list ends with tasks, sums over replicas, sums over ties, one vote and updates,
///      in this order; a list of forwards has none of these. Every rank of a replica group has one
///      Collective for the group, an all-reduce, and every rank of a tie has one for the tie, an
///      all-gather. A rank enters its groups, and then its ties, in ascending order, so ranks that
///      share several cannot wait for each other.
/// P-8: a backward with nothing to do (StageGraph::is_surplus) is a Run that reads and writes
///      nothing, so that the tasks of a rank are those of its row.
/// P-9: an instruction has the slots that its kind needs, and names nothing that its rank does not
///      have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

/// PlanEdge is a tensor on its way between two places. The edge id is part of every tag.
struct PlanEdge {
  EdgeId id;
  ValueId value;
  Role role = Role::Activation;
  StageId from;  ///< StageId(-1): the driver
  StageId to;    ///< likewise
};

/// Feed is a tensor that the driver sends at the start of a step: one model input or label of one
/// of the step's microbatches.
struct Feed {
  Rank to;
  EdgeId edge;
  Microbatch microbatch;
  bool label = false;
  int position = 0;  ///< the number of the input or label
};

/// PlanResult is a value that the driver receives from an evaluation, for one microbatch.
struct PlanResult {
  Rank from;
  EdgeId edge;
  Microbatch microbatch;
  ValueId value;
};

/// ReplicaGroup is one stage of the model and its copies. Their gradients are summed before the
/// vote.
struct ReplicaGroup {
  std::vector<StageId> stages;  ///< by replica
  std::vector<Rank> ranks;      ///< where they are; ascending, each once
};

/// Tie is a set of parameters that the same stages use. Each stage has a part of their gradients.
/// Before the vote the parts are added in the order of `stages`.
struct Tie {
  std::vector<StageId> stages;          ///< of one replica, in the model's order
  std::vector<Rank> ranks;              ///< by stage: its rank
  std::vector<std::string> parameters;  ///< in the model's order, of one dtype

  /// Returns the ranks, ascending, each once.
  [[nodiscard]] std::vector<Rank> members() const;
};

struct RankPlan {
  Rank rank;
  std::vector<StageId> stages;  ///< ascending
  std::int32_t slots = 0;
  std::vector<Instruction> instructions;  ///< in issue order
};

struct Plan {
  bool training = true;                      ///< false: forward only
  int microbatches = 1;                      ///< the smallest that a stage has
  int losses = 1;                            ///< microbatches of the stage that computes the loss
  std::vector<PlanEdge> edges;               ///< by id
  std::vector<RankPlan> ranks;               ///< by rank
  std::vector<Feed> feeds;                   ///< in sending order
  std::vector<PlanResult> results;           ///< ascending by rank
  std::vector<ReplicaGroup> replica_groups;  ///< empty with one replica
  std::vector<Tie> ties;                     ///< of parameters that train

  [[nodiscard]] std::size_t instruction_count() const;
  /// Returns how many of these are backwards with nothing to do (P-8).
  [[nodiscard]] std::size_t surplus_count() const;
};

/// Returns one line per instruction, preceded by one per tie.
[[nodiscard]] std::string to_string(const Plan& plan);
/// Returns "embed.weight of stages 0, 3 on ranks 0, 1".
[[nodiscard]] std::string to_string(const Tie& tie);
[[nodiscard]] std::string to_string(const Instruction& instruction);

/// Returns the stage, microbatch, task and peer of an instruction that has them, as the context of
/// an error in it.
[[nodiscard]] ErrorContext place_of(const Instruction& instruction);

/// Returns everything that breaks P-1 to P-9, one sentence each; empty for a sound plan. "Over" and
/// "before" are judged by streams and waits alone, not by the order of the list.
[[nodiscard]] std::vector<std::string> verify(const Plan& plan);
/// Returns the part of these violations that one rank's list shows.
[[nodiscard]] std::vector<std::string> verify(const RankPlan& rank, bool training);

template <class V>
decltype(auto) visit_fields(ReplicaGroup& m, V&& v) {
  return v(m.stages, m.ranks);
}
template <class V>
decltype(auto) visit_fields(Tie& m, V&& v) {
  return v(m.stages, m.ranks, m.parameters);
}
template <class V>
decltype(auto) visit_fields(RankPlan& m, V&& v) {
  return v(m.rank, m.stages, m.slots, m.instructions);
}

}  // namespace stagecraft
