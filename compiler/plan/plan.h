/// Plan holds the instruction lists of all ranks, lowered from a program and a strategy. It is
/// plain data that prints, compares and is verified before anything runs. It names ranks, never
/// workers or hosts.
///
///     lists[0]   F0 send F1 send ... B0 B1 start finish vote update      shared by ranks 0 and 2
///     ranks[2]   list 0, microbatches from 4 on, peer 1 is rank 3
///
/// Ranks that do the same on other samples share a list (LA-3). A list names its peers by numbers,
/// and microbatches from the rank's first one on.
///
/// P-1: the ids of a list's n instructions are the numbers below n. Dependencies are ids of the
///      same list, never positions.
/// P-2: a stream is an in-order queue; between streams only `waits` order instructions. Tasks of
///      one overlap group are the exception: their blocks (receives, run, sends) may be issued in
///      any order, and none waits for another. No collective is in such a group.
/// P-3: every Send has one Recv of the same edge and microbatch at its peer, and vice versa.
///      Between stages of different microbatch sizes parts cross. A part is named by the first of
///      the step's microbatches in it.
/// P-4: every slot that is written is freed exactly once: after all its users are over, and before
///      its next writer begins.
/// P-5: the lists cannot deadlock if each rank does one instruction after the other in the order of
///      its list, and no send and no start waits.
/// P-6: an instruction waits only for earlier ones of its list. The instruction that fills a slot
///      is over before another reads it.
/// P-7: a training list has one vote, after all its tasks and sums; after it only updates follow,
///      and gathers of what they have updated. A list of forwards has none of these, but gathers of
///      weights for its tasks. A group sums once in a step on every member (but see P-11), on
///      streams of one name: a Start after the tasks whose gradients it sums, and a Finish on the
///      same stream, before the vote. A group with shards gathers once on every member in the same
///      way, after the updates of its bucket (but see P-12). The ranks of a set of a tie have the
///      same shard of its stages' gradients, or all of them.
/// P-8: a backward with nothing to do (StageGraph::is_surplus) is a Run that reads and writes
///      nothing, so that the tasks of a rank are those of its row.
/// P-9: an instruction has the slots that its kind needs, and names nothing that its rank does not
///      have.
/// P-10: the lists cannot deadlock if each stream goes as far ahead as the waits allow, a send
///      occupies its stream until its receive is reached, a collective occupies the streams of all
///      members until all have reached it, and a free occupies none. This is how NCCL and a GPU's
///      streams and memory behave.
/// P-11: a group that shares gradients sums in rounds, as many on every member, numbered from 0. A
///      round sums what the tasks since the round before it have made, and is over before the next
///      task that makes gradients of its bucket begins. P-7 holds for each round.
/// P-12: a group that shares weights gathers them in rounds, too, and not after the update. Tasks
///      that use weights of its bucket run between the Finish of a round and its Release, which
///      follows them. The next round begins after the Release. In an evaluation this holds for
///      groups that divide weights, too, and a group may have no round.
/// P-13: a chunk whose weights the ranks of a group divide runs by itself. Each of its forwards and
///      backwards, but not a weight half behind its input half, comes between two exchanges: one
///      brings samples, or their gradients, to the rank that has their weights, and the other
///      returns the results before the next chunk of the task runs. All ranks of the group have
///      one list, and no other rank has it. If several sets of ranks divide a chunk, those with
///      the same part are one set of a group of copies, which shares nothing; no other group sums
///      the chunk. Its ranks, ascending, take the step's microbatches in order, as many each. An
///      evaluation has no exchanges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/instruction.h"
#include "stagecraft/scheduler/strategy/sharing.h"

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

/// PlanResult is a value that the driver receives from an evaluation, for one of the step's
/// microbatches.
struct PlanResult {
  Rank from;
  EdgeId edge;
  Microbatch microbatch;
  ValueId value;
};

/// PlanStage is a stage of the schedule.
struct PlanStage {
  StageId program;  ///< the program's stage that it runs
  int copy = 0;     ///< the number of this copy in the schedule
  int size = 1;     ///< of its microbatches (SG-4)
};

/// PlanBucket is a set of parameters whose gradients are summed together, and which are updated
/// together: those of some chunks of a stage.
struct PlanBucket {
  std::vector<StageId> stages;  ///< the stages that have it: one, or all copies in the schedule
  ChunkRange chunks;            ///< of an evaluation: those that use its weights; may be none
};

/// PlanGroup is a set of ranks that sum gradients, and may share what they hold, or that divide the
/// weights of a chunk.
struct PlanGroup {
  enum class Kind : std::uint8_t {
    Copies,   ///< the copies of a bucket: all get the sum over all of them
    Tie,      ///< parameters that several stages use: each stage has a part of their gradients, and
              ///< all get the sum of the parts, in the order of `stages`
    Divided,  ///< each has an equal part of the weights of a chunk, in dimension 0, and they
              ///< exchange samples (P-13)
  };
  Kind kind = Kind::Copies;
  std::int32_t bucket = -1;     ///< Copies, Divided: position in PlanTables::buckets
  std::vector<StageId> stages;  ///< Copies, Divided: those of the bucket; Tie: in the model's order
  std::vector<std::string> parameters;  ///< Tie: in the model's order, of one dtype
  /// Each set works by itself. Divided: by copy of the weights, the rank of each part, ascending.
  /// Copies: one set of all ranks, ascending; if their bucket is divided, by part, the rank of each
  /// copy. Tie: by stage, its rank; the i-th set has the i-th ranks, ascending, of each stage.
  std::vector<std::vector<Rank>> sets;
  Sharing sharing = Sharing::Nothing;  ///< of copies

  [[nodiscard]] bool has_shards() const { return sharing != Sharing::Nothing; }
  /// Returns whether it sums gradients of parts that another group's ranks have.
  [[nodiscard]] bool sums_parts() const { return kind == Kind::Copies && sets.size() > 1; }
  /// Returns whether it sums in rounds (P-11).
  [[nodiscard]] bool has_rounds() const { return sharing >= Sharing::Gradients; }
  /// Returns whether it gathers weights for tasks (P-12).
  [[nodiscard]] bool lends_weights() const { return sharing == Sharing::Weights; }
  /// Returns whether each member has a part of the weights. An evaluation gathers them.
  [[nodiscard]] bool splits_weights() const { return lends_weights() || kind == Kind::Divided; }
  /// Returns the ranks of the set with this rank, ascending, each once; empty if no set has it.
  [[nodiscard]] std::vector<Rank> members(Rank rank) const;

  friend bool operator==(const PlanGroup&, const PlanGroup&) = default;
};

/// PlanTables holds the objects to which the instructions of a plan refer by number.
struct PlanTables {
  bool training = true;             ///< false: forward only
  int microbatches = 1;             ///< of the step, the smallest that a stage has
  int losses = 1;                   ///< microbatches of the stage that computes the loss
  bool has_overlaps = false;        ///< a list has overlap groups: its rank chooses their order
  std::vector<PlanStage> stages;    ///< by id
  std::vector<PlanBucket> buckets;  ///< of an evaluation: empty unless groups split weights
  std::vector<PlanGroup> groups;    ///< of an evaluation: empty, or those that train
};

/// RankList is the work of ranks in a step.
struct RankList {
  std::vector<StageId> stages;       ///< ascending
  std::vector<std::string> streams;  ///< their names; the first is that of kCompute
  std::int32_t peers = 1;            ///< their number, with the driver
  std::int32_t slots = 0;
  std::vector<Instruction> instructions;  ///< in issue order
};

/// RankPlan is a list as one rank runs it.
struct RankPlan {
  Rank rank;
  std::int32_t list = 0;              ///< position in Plan::lists
  std::int32_t first_microbatch = 0;  ///< of the step: the list's microbatch 0
  std::vector<Rank> peers;            ///< by PeerId; the driver first
};

struct Plan {
  PlanTables tables;
  std::vector<PlanEdge> edges;  ///< by id
  std::vector<RankList> lists;
  std::vector<RankPlan> ranks;      ///< by rank
  std::vector<Feed> feeds;          ///< in sending order
  std::vector<PlanResult> results;  ///< ascending by rank

  [[nodiscard]] const RankList& list_of(Rank rank) const {
    return lists[static_cast<std::size_t>(ranks[rank.index()].list)];
  }
  /// Return numbers over all ranks.
  [[nodiscard]] std::size_t instruction_count() const;
  /// Returns how many of these are backwards with nothing to do (P-8).
  [[nodiscard]] std::size_t surplus_count() const;
};

/// Returns the numbers that a copy's stages have in the schedule, by the program's number.
[[nodiscard]] std::vector<StageId> numbers_of_copy(const std::vector<PlanStage>& stages, int copy);

/// Returns the number that a microbatch of the list has in the step, as the stage of `size` counts
/// them.
[[nodiscard]] constexpr Microbatch in_step_of(const RankPlan& rank, Microbatch m, int size) {
  return Microbatch(m.value + rank.first_microbatch / size);
}
/// Returns the microbatch in the tag of a Send or Recv.
[[nodiscard]] Microbatch tagged_microbatch(const PlanTables& tables,
                                           const RankPlan& rank,
                                           const Instruction& transfer);

/// Returns whether the group sums gradients that the Accumulate adds up.
[[nodiscard]] bool sums(const PlanTables& tables,
                        const PlanGroup& group,
                        const Instruction& accumulate);

/// Returns whether the group gathers weights for tasks (P-12).
[[nodiscard]] bool gathers_for_tasks(const PlanTables& tables, const PlanGroup& group);

/// Returns whether the Start or Finish is of a gather of weights. Requires: the plan has its group.
[[nodiscard]] bool gathers_weights(const PlanTables& tables, const Instruction& collective);

/// Returns whether the group sums in rounds, and the task makes gradients of its bucket.
[[nodiscard]] bool makes_gradients_of(const PlanTables& tables,
                                      const PlanGroup& group,
                                      const Instruction& run);

/// Returns whether the group gathers weights for tasks, and the task uses some of its bucket.
[[nodiscard]] bool uses_weights_of(const PlanTables& tables,
                                   const PlanGroup& group,
                                   const Instruction& run);

/// Returns the parameters of all ties of the stage, tie by tie.
[[nodiscard]] std::vector<std::string> tied_parameters_of(const PlanTables& tables, StageId stage);

/// Returns the ranks that have the same part of divided weights, one set for each part; none if
/// there is one copy.
[[nodiscard]] std::vector<std::vector<Rank>> copies_of_parts(const PlanGroup& divided);

/// Returns whether ranks divide the weights of a chunk, and exchange its samples (P-13).
[[nodiscard]] bool divides_weights(const PlanTables& tables);

/// Returns the step's microbatches whose samples an exchange of the rank moves, one of each rank of
/// its set, ascending by rank (P-13). Requires: the rank has the exchange.
[[nodiscard]] std::vector<Microbatch> exchanged_microbatches(const PlanTables& tables,
                                                             Rank rank,
                                                             const Instruction& exchange);

/// Returns whether copies of a stage hold different things: shards, or parts of divided weights.
[[nodiscard]] bool copies_differ(const Plan& plan);

/// Returns one line per instruction of each list, preceded by one per group.
[[nodiscard]] std::string to_string(const Plan& plan);
/// Returns "embed.weight of stages 0, 3", "stage 0" or "chunks 0-3 of stages 0, 7".
[[nodiscard]] std::string to_string(const PlanTables& tables, const PlanGroup& group);
/// Returns "i5 send edge 1 mb 1 to peer 1 reads ...".
[[nodiscard]] std::string to_string(const Instruction& instruction);
/// Returns the same with the rank's own peer.
[[nodiscard]] std::string to_string(const RankPlan& rank, const Instruction& instruction);

/// Returns that without slots and waits.
[[nodiscard]] std::string short_name(const RankPlan& rank, const Instruction& instruction);

/// Returns the stage, microbatch, task and peer of a rank's instruction that has them, as the
/// context of an error in it.
[[nodiscard]] ErrorContext place_of(const PlanTables& tables,
                                    const RankPlan& rank,
                                    const Instruction& instruction);

/// Returns all breaches of P-1 to P-13, one sentence each; empty for a sound plan. "Over" and
/// "before" are judged by streams and waits alone, not by the order of the list. A deadlock is
/// reported with a short cycle.
[[nodiscard]] std::vector<std::string> verify(const Plan& plan);
/// Returns the part of these violations that one list shows. `name`: of the list, for messages.
[[nodiscard]] std::vector<std::string> verify(const RankList& list,
                                              const PlanTables& tables,
                                              const std::string& name);

template <class V>
decltype(auto) visit_fields(PlanStage& m, V&& v) {
  return v(m.program, m.copy, m.size);
}
template <class V>
decltype(auto) visit_fields(PlanBucket& m, V&& v) {
  return v(m.stages, m.chunks);
}
template <class V>
decltype(auto) visit_fields(PlanGroup& m, V&& v) {
  return v(m.kind, m.bucket, m.stages, m.parameters, m.sets, m.sharing);
}
template <class V>
decltype(auto) visit_fields(PlanTables& m, V&& v) {
  return v(m.training, m.microbatches, m.losses, m.has_overlaps, m.stages, m.buckets, m.groups);
}
template <class V>
decltype(auto) visit_fields(RankList& m, V&& v) {
  return v(m.stages, m.streams, m.peers, m.slots, m.instructions);
}
template <class V>
decltype(auto) visit_fields(RankPlan& m, V&& v) {
  return v(m.rank, m.list, m.first_microbatch, m.peers);
}

}  // namespace stagecraft
