/// Tests that verify() refuses deadlocks which users of other training systems met while they
/// trained: each is a plan whose streams would wait for each other for ever, and none of it runs.
///
/// The plans here are sound ones in which one or two ranks get another order. This runtime orders
/// every stream, sends from buffers and starts sums without waiting, so of these plans it would run
/// all but the one that P-5 refuses; NCCL would run none (P-10).
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/compiler/lower/waits.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/compiler/plan/small_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::chain_program;
using testing::list_of;

/// Moves all sums behind the last task, in the order of their groups: the tests give one or two
/// ranks another order from there.
Plan with_sums_last(Plan plan) {
  for (RankList& list : plan.lists) {
    std::vector<Instruction>& all = list.instructions;
    const auto vote = std::ranges::find(all, Op::Vote, &Instruction::op);
    const auto first = std::stable_partition(all.begin(), vote, [](const Instruction& i) {
      return i.op != Op::Start && i.op != Op::Finish;
    });
    std::stable_sort(first, vote, [](const Instruction& one, const Instruction& other) {
      return std::pair(one.op == Op::Finish, one.group) <
             std::pair(other.op == Op::Finish, other.group);
    });
    for (Instruction& i : all) {
      i.waits.clear();
    }
    set_waits(list, plan.tables);
  }
  return plan;
}

/// Returns the plan of a schedule whose transfers and sums are on one stream.
Plan plan_on_one_stream(const Program& program, const Schedule& schedule) {
  const Layout layout = Layout::of(schedule);
  std::vector<Directive> directives = strategy_of(schedule, layout).directives();
  for (Directive& directive : directives) {
    if (auto* place = std::get_if<PlaceDirective>(&directive)) {
      place->stream = "comm";
    } else if (auto* replicate = std::get_if<ReplicateDirective>(&directive)) {
      replicate->options.reduce_stream = "comm";
    }
  }
  return lower(program, Strategy(std::move(directives)), layout, true).plan;
}

/// Gives each rank a list of its own, so that ranks may differ.
void part_lists(Plan& plan) {
  std::vector<RankList> lists;
  for (RankPlan& rank : plan.ranks) {
    lists.push_back(plan.list_of(rank.rank));
    rank.list = static_cast<std::int32_t>(lists.size()) - 1;
  }
  plan.lists = std::move(lists);
}

using InList = std::vector<Instruction>::iterator;

/// `task`: of a transfer, the one that makes or reads its tensor.
InList instruction_of(RankList& list, Op op, const Task& task) {
  const auto found = std::ranges::find_if(
      list.instructions, [&](const Instruction& i) { return i.op == op && i.task == task; });
  REQUIRE(found != list.instructions.end());
  return found;
}

InList start_of(RankList& list, int group) {
  const auto found = std::ranges::find_if(list.instructions, [&](const Instruction& i) {
    return i.op == Op::Start && i.group == group;
  });
  REQUIRE(found != list.instructions.end());
  return found;
}

/// Issues a send, and the free behind it, before `receive`.
void send_first(RankList& list, const Task& sends, const Task& receives) {
  const InList send = instruction_of(list, Op::Send, sends);
  const InList receive = instruction_of(list, Op::Recv, receives);
  REQUIRE(receive < send);
  REQUIRE((send + 1)->op == Op::Free);
  // State the waits that followed from the other order.
  send->waits = {instruction_of(list, Op::Run, sends)->id};
  for (InList i = receive; i != send; ++i) {
    if (i->op == Op::Recv) {
      instruction_of(list, Op::Run, i->task)->waits.push_back(i->id);
    }
  }
  std::rotate(receive, send, send + 2);
}

/// Issues the sum of a group before `other`, as soon as its gradients are complete.
void sum_first(RankList& list, int group, InList other) {
  const InList start = start_of(list, group);
  REQUIRE(other < start);
  // Earlier, it no longer follows from the waits of its stream.
  start->waits.clear();
  for (const Instruction& i : std::ranges::subrange(list.instructions.begin(), other)) {
    if (i.op == Op::Accumulate && i.task.stage.value == group) {
      start->waits = {i.id};
    }
  }
  std::rotate(other, start, start + 1);
}

Task forward_of(int stage, int microbatch) {
  return {CellKind::Forward, StageId(stage), Microbatch(microbatch)};
}
Task backward_of(int stage, int microbatch) {
  return {CellKind::Backward, StageId(stage), Microbatch(microbatch)};
}

void check_refused(const Plan& plan, std::string_view cycle) {
  const std::vector<std::string> faults = verify(plan);
  CAPTURE(faults);
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], ContainsSubstring(fmt::format("streams wait for each other: {}", cycle)));
}

// ---- sums of two groups -------------------------------------------------------------------------

/// Two copies of a model of two stages, one on each rank; group s sums the gradients of stage s.
Plan two_copies() {
  using namespace filters;
  const Strategy copies = Strategy{}
                              .split({}, 2)
                              .place(everything(), {Rank(0), Rank(1)})
                              .replicate(stage(0), {Rank(0), Rank(1)})
                              .replicate(stage(1), {Rank(0), Rank(1)});
  const Schedule one_rank = Schedule::parse("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n");
  return with_sums_last(lower(chain_program(2, 4), copies, Layout::of(one_rank), true).plan);
}

TEST_CASE("P-10: two sums that two ranks start in different orders on one stream are refused",
          "[compiler][plan][deadlock]") {
  Plan plan = two_copies();
  part_lists(plan);
  REQUIRE(verify(plan).empty());
  RankList& list = list_of(plan, 1);
  sum_first(list, 1, start_of(list, 0));
  check_refused(plan,
                "all-reduce of group 1 (stage 1) of ranks 0, 1 -> "
                "on rank 1: all-reduce of group 0 (stage 0) of ranks 0, 1 -> "
                "on rank 0: all-reduce of group 1 (stage 1) of ranks 0, 1");
}

TEST_CASE("P-5: ranks that also finish the first sum before they start the second are refused",
          "[compiler][plan][deadlock]") {
  Plan plan = two_copies();
  part_lists(plan);
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<Instruction>& list = list_of(plan, rank).instructions;
    const InList start = start_of(list_of(plan, rank), 0);
    REQUIRE((start + 2)->op == Op::Finish);
    REQUIRE((start + 2)->group == 0);
    std::rotate(start + 1, start + 2, start + 3);  // start 0, finish 0, start 1, finish 1
    if (rank == 1) {
      const std::vector<InstructionId> waits = start->waits;
      std::rotate(start, start + 2, start + 4);
      start->waits = waits;
    }
    std::ranges::find(list, Op::Vote, &Instruction::op)->waits = {(start + 1)->id, (start + 3)->id};
  }
  const std::vector<std::string> faults = verify(plan);
  REQUIRE(faults.size() == 2);
  CHECK_THAT(faults[0],
             ContainsSubstring("P-5: ranks wait for each other: ") &&
                 ContainsSubstring("rank 0 i18 finish all-reduce of group 0 -> "
                                   "rank 0 i12 start all-reduce of group 1") &&
                 ContainsSubstring("rank 1 i19 finish all-reduce of group 1 -> "
                                   "rank 1 i17 start all-reduce of group 0"));
  CHECK_THAT(faults[1], ContainsSubstring("P-10"));
}

TEST_CASE("P-2: a sum that could be started in any order, in an overlap group, is refused",
          "[compiler][plan][deadlock]") {
  Plan plan = two_copies();
  for (Instruction& i : list_of(plan, 0).instructions) {
    i.overlap = i.op == Op::Start ? 0 : -1;
  }
  CAPTURE(verify(plan));
  CHECK(testing::mentions(verify(plan),
                          "start all-reduce of group 1 overlap 0: is in an overlap group"));
}

// ---- a collective and transfers -----------------------------------------------------------------

/// Two copies of a pipeline: stages 0 and 2 on ranks 0 and 2, stages 1 and 3 on ranks 1 and 3.
Plan two_pipelines() {
  return with_sums_last(plan_on_one_stream(
      chain_program(4, 4),
      Schedule::parse("@place 0=0,2 1=1,3\n" + to_string(interleaved(2, 2, 2)))));
}

TEST_CASE("P-10: a collective of copies and transfers of the pipeline in other orders are refused",
          "[compiler][plan][deadlock]") {
  Plan plan = two_pipelines();
  REQUIRE(verify(plan).empty());
  part_lists(plan);
  REQUIRE(verify(plan).empty());
  for (int rank = 0; rank < 4; ++rank) {
    RankList& list = list_of(plan, rank);
    sum_first(list, 2 + rank % 2, start_of(list, rank % 2));
  }
  REQUIRE(verify(plan).empty());
  // One pipeline sums stage 2 before its last gradient, the other stage 3.
  sum_first(list_of(plan, 0), 2, instruction_of(list_of(plan, 0), Op::Recv, backward_of(0, 1)));
  sum_first(list_of(plan, 3), 3, instruction_of(list_of(plan, 3), Op::Send, backward_of(1, 1)));
  check_refused(
      plan,
      "all-reduce of group 3 (stage 3) of ranks 1, 3 -> "
      "on rank 3: rank 3 i27 send edge 5 mb 1 to rank 2 with rank 2 i25 recv edge 5 mb 1 from "
      "rank 3 -> "
      "on rank 2: all-reduce of group 2 (stage 2) of ranks 0, 2 -> "
      "on rank 0: rank 1 i27 send edge 5 mb 1 to rank 0 with rank 0 i25 recv edge 5 mb 1 from "
      "rank 1 -> "
      "on rank 1: all-reduce of group 3 (stage 3) of ranks 1, 3");
}

// ---- sends and receives -------------------------------------------------------------------------

TEST_CASE("P-10: two ranks that both send before they receive are refused on one stream",
          "[compiler][plan][deadlock]") {
  Plan plan = plan_on_one_stream(chain_program(4, 4), interleaved(2, 4, 2));
  REQUIRE(verify(plan).empty());
  SECTION("in the warm-up: 0SEND_F1 2RECV_F0 against 1SEND_F0 1RECV_F1") {
    send_first(list_of(plan, 0), forward_of(0, 1), forward_of(2, 0));
    check_refused(plan,
                  "rank 1 i2 send edge 2 mb 0 to rank 0 with rank 0 i5 recv edge 2 mb 0 from "
                  "rank 1 -> on rank 1: rank 0 i6 send edge 1 mb 1 to rank 1 with rank 1 i3 recv "
                  "edge 1 mb 1 from rank 0 -> on rank 0: rank 1 i2 send edge 2 mb 0");
  }
  SECTION("in the steady state: 0SEND_F2 2RECV_B0 against 3SEND_B0 1RECV_F2") {
    send_first(list_of(plan, 0), forward_of(0, 2), backward_of(2, 0));
    check_refused(plan, "rank 1 i11 send edge 7 mb 0 to rank 0 with rank 0 i13 recv edge 7 mb 0");
    CHECK(testing::mentions(verify(plan),
                            "-> on rank 1: rank 0 i20 send edge 1 mb 2 to rank 1 with rank 1 i18 "
                            "recv edge 1 mb 2 from rank 0 -> on rank 0: rank 1 i11 send"));
  }
}

TEST_CASE("P-10: one stream carries the transfers and sums of every schedule without overlap",
          "[compiler][plan][deadlock]") {
  std::vector<std::string> refused;
  for (const BuilderInfo& builder : builders()) {
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const Schedule schedule = build_schedule(builder.name, request);
    INFO(builder.name);
    const Program program = chain_program(Layout::of(schedule).model_stages(), 8);
    try {
      const Plan plan = plan_on_one_stream(program, schedule);
      CHECK(verify(plan).empty());
    } catch (const Error& error) {
      CHECK_THAT(error.message(), ContainsSubstring("P-10: streams wait for each other"));
      refused.emplace_back(builder.name);
    }
  }
  CHECK(refused == std::vector<std::string>{"dualpipe", "dualpipev"});
}

TEST_CASE("the same order is sound where each direction has a stream of its own",
          "[compiler][plan][deadlock]") {
  const Schedule schedule = interleaved(2, 4, 2);
  const Plan plan = testing::plan_of(chain_program(4, 4), schedule);
  CHECK(verify(plan).empty());
  CHECK(plan.lists[0].streams == std::vector<std::string>{"compute", "receive", "send"});
  const auto& list = plan.lists[0].instructions;
  const auto at = [&](Op op, const Task& task) {
    return std::ranges::find_if(list,
                                [&](const Instruction& i) { return i.op == op && i.task == task; });
  };
  CHECK(at(Op::Send, forward_of(0, 1)) < at(Op::Recv, forward_of(2, 0)));
}

}  // namespace
}  // namespace stagecraft
