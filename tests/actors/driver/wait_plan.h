/// Builds a training plan of three ranks in a row, with one stage and one microbatch, for tests of
/// waits between ranks. Every list is as short as possible, and valid except for its slots.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

inline constexpr Microbatch kOnly{3};

inline Instruction run(CellKind kind, int stage) {
  return {.op = Op::Run, .task = {kind, StageId(stage), kOnly}};
}

/// `peer`: a rank.
inline Instruction transfer(Op op, int edge, int peer, CellKind kind, int stage) {
  return {.stream = StreamId(op == Op::Send ? 1 : 2),
          .op = op,
          .task = {kind, StageId(stage), kOnly},
          .peer = PeerId(peer + 1),
          .edge = EdgeId(edge)};
}

/// Returns a plan of one list per rank, whose stages have the ranks' numbers.
inline Plan plan_of_lists(std::vector<std::vector<Instruction>> lists) {
  Plan plan;
  const auto ranks = static_cast<std::int32_t>(lists.size());
  for (std::int32_t r = 0; r < ranks; ++r) {
    RankList& list = plan.lists.emplace_back();
    list.stages = {StageId(r)};
    list.streams = {"compute", "send", "receive"};
    list.peers = ranks + 1;
    list.instructions = std::move(lists[static_cast<std::size_t>(r)]);
    for (std::size_t i = 0; i < list.instructions.size(); ++i) {
      list.instructions[i].id = InstructionId(i);
    }
    plan.tables.stages.push_back({.program = StageId(r)});
    RankPlan& rank = plan.ranks.emplace_back(RankPlan{.rank = Rank(r), .list = r});
    for (std::int32_t peer = -1; peer < ranks; ++peer) {
      rank.peers.emplace_back(peer);
    }
  }
  return plan;
}

/// Edges 0 and 1 lead forward, edges 2 and 3 back. Positions:
///
///   rank 0   0 run 0F3   1 send     2 recv     3 run 0B3   4 vote
///   rank 1   0 recv      1 run 1F3  2 send     3 recv      4 run 1B3   5 send   6 vote
///   rank 2   0 recv      1 run 2F3  2 run 2B3  3 send      4 vote
inline Plan wait_plan() {
  constexpr auto kForward = CellKind::Forward;
  constexpr auto kBackward = CellKind::Backward;
  return plan_of_lists({{run(kForward, 0),
                         transfer(Op::Send, 0, 1, kForward, 0),
                         transfer(Op::Recv, 3, 1, kBackward, 0),
                         run(kBackward, 0),
                         {.op = Op::Vote}},
                        {transfer(Op::Recv, 0, 0, kForward, 1),
                         run(kForward, 1),
                         transfer(Op::Send, 1, 2, kForward, 1),
                         transfer(Op::Recv, 2, 2, kBackward, 1),
                         run(kBackward, 1),
                         transfer(Op::Send, 3, 0, kBackward, 1),
                         {.op = Op::Vote}},
                        {transfer(Op::Recv, 1, 1, kForward, 2),
                         run(kForward, 2),
                         run(kBackward, 2),
                         transfer(Op::Send, 2, 1, kBackward, 2),
                         {.op = Op::Vote}}});
}

}  // namespace stagecraft
