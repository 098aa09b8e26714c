#include "stagecraft/actors/driver/wait_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "stagecraft/tests/actors/driver/wait_plan.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Ranks = std::vector<Rank>;

/// A rank that has reported where it is.
UnfinishedRank reported(int rank, int instruction, Ranks waiting_for = {}) {
  return {.rank = Rank(rank),
          .status = StatusReply{.rank = Rank(rank),
                                .instruction = instruction,
                                .seconds = 1.5,
                                .waiting_for = std::move(waiting_for)}};
}

UnfinishedRank silent_since(UnfinishedRank reported) {
  reported.silent_for = 4.0;
  return reported;
}

std::string task_text(const std::optional<Task>& task) {
  return task ? to_string(*task) : "none";
}

TEST_CASE("WG-1: a chain of waits ends at a silent rank, whatever it last waited for",
          "[actors][driver]") {
  const Plan plan = wait_plan();
  const std::vector<UnfinishedRank> ranks{reported(0, 2, {Rank(1)}),
                                          reported(1, 3, {Rank(2)}),
                                          silent_since(reported(2, 0, {Rank(0)}))};
  const WaitGraph graph(ranks, plan);
  CHECK(graph.is_silent(Rank(2)));
  CHECK(graph.waiting_for(Rank(2)).empty());
  CHECK(graph.holds_up(Rank(2)));
  CHECK_FALSE(graph.holds_up(Rank(1)));
  CHECK((graph.chain_from(Rank(0)) == Ranks{Rank(0), Rank(1), Rank(2)}));
  CHECK((graph.chain_to(Rank(2)) == Ranks{Rank(0), Rank(1), Rank(2)}));
  CHECK(graph.text(graph.chain_from(Rank(0))) ==
        "rank 0 waits for 1B3 from rank 1, which waits for 2B3 from rank 2");
  CHECK(graph.text({Rank(2)}).empty());
  CHECK(graph.seconds_in_instruction(Rank(1)) == 1.5);
}

TEST_CASE("a chain prefers a rank that holds others up to one that has answered",
          "[actors][driver]") {
  const Plan plan = wait_plan();
  const std::vector<UnfinishedRank> ranks{reported(0, 4, {Rank(1), Rank(2)}), reported(2, 2)};
  const WaitGraph graph(ranks, plan);
  CHECK(graph.find(Rank(1)) == nullptr);
  CHECK_FALSE(graph.holds_up(Rank(1)));
  CHECK((graph.chain_from(Rank(0)) == Ranks{Rank(0), Rank(2)}));
  CHECK(graph.text(graph.chain_from(Rank(0))) == "rank 0 waits for the vote of rank 1, rank 2");
  CHECK(graph.seconds_in_instruction(Rank(1)) == 0);
}

TEST_CASE("a chain ends at any other end if nobody is held up, and in a circle at its begin",
          "[actors][driver]") {
  const Plan plan = wait_plan();
  SECTION("the last rank has answered, as its peer does not know yet") {
    const std::vector<UnfinishedRank> ranks{reported(0, 2, {Rank(1)})};
    CHECK((WaitGraph(ranks, plan).chain_from(Rank(0)) == Ranks{Rank(0), Rank(1)}));
  }
  SECTION("a circle") {
    const std::vector<UnfinishedRank> ranks{
        reported(0, 2, {Rank(1)}), reported(1, 3, {Rank(2)}), reported(2, 0, {Rank(1)})};
    const WaitGraph graph(ranks, plan);
    CHECK((graph.chain_from(Rank(0)) == Ranks{Rank(0), Rank(1), Rank(2), Rank(1)}));
    CHECK((graph.chain_to(Rank(0)) == Ranks{Rank(0)}));
  }
}

TEST_CASE("WG-2: a task has begun if its rank was seen in it or after it", "[actors][driver]") {
  const Plan plan = wait_plan();
  const auto seen_at = [&](int instruction) {
    const std::vector<UnfinishedRank> ranks{reported(1, instruction)};
    return task_text(WaitGraph(ranks, plan).last_begun(Rank(1)));
  };
  CHECK(seen_at(-1) == "none");
  CHECK(seen_at(0) == "none");  // it receives its first value
  CHECK(seen_at(1) == "1F3");
  CHECK(seen_at(3) == "1F3");
  CHECK(seen_at(6) == "1B3");
}

TEST_CASE("WG-2: a task has begun if a peer has received what was sent after it",
          "[actors][driver]") {
  const Plan plan = wait_plan();
  const auto begun = [&](std::vector<UnfinishedRank> ranks) {
    return task_text(WaitGraph(ranks, plan).last_begun(Rank(1)));
  };
  CHECK(begun({{.rank = Rank(1)}, reported(2, 0, {Rank(1)})}) == "none");
  CHECK(begun({{.rank = Rank(1)}, reported(2, 1)}) == "1F3");
  CHECK(begun({{.rank = Rank(1)}, reported(0, 3), reported(2, 4)}) == "1B3");
  // An old report of the rank tells less than its peers.
  CHECK(begun({silent_since(reported(1, 1)), reported(0, 3)}) == "1B3");
}

TEST_CASE("WG-2: of an overlap group only the task that was seen has begun", "[actors][driver]") {
  constexpr auto kForward = CellKind::Forward;
  Instruction second = run(kForward, 1), third = run(kForward, 2);
  Instruction receive = transfer(Op::Recv, 0, 1, kForward, 2);
  second.overlap = third.overlap = receive.overlap = 0;
  const Plan plan = plan_of_lists({{run(kForward, 0), second, receive, third}, {}});
  const auto seen_at = [&](int instruction) {
    const std::vector<UnfinishedRank> ranks{reported(0, instruction)};
    return task_text(WaitGraph(ranks, plan).last_begun(Rank(0)));
  };
  CHECK(seen_at(1) == "1F3");
  CHECK(seen_at(2) == "0F3");  // the second may not have begun
  CHECK(seen_at(3) == "2F3");
}

TEST_CASE("what a rank does is told in the words of schedules", "[actors][driver]") {
  const Plan plan = plan_of_lists({{run(CellKind::Forward, 0),
                                    transfer(Op::Send, 0, 1, CellKind::Forward, 0),
                                    transfer(Op::Recv, 1, 1, CellKind::Backward, 0),
                                    {.op = Op::Accumulate, .task = run(CellKind::Backward, 0).task},
                                    {.op = Op::Vote},
                                    {.op = Op::Update, .task = run(CellKind::Backward, 0).task}},
                                   {}});
  const auto told = [&](int instruction) {
    const std::vector<UnfinishedRank> ranks{reported(0, instruction)};
    return WaitGraph(ranks, plan).work(Rank(0));
  };
  CHECK(told(0) == "0F3");
  CHECK(told(1) == "the send of 0F3 to rank 1");
  CHECK(told(2) == "the receive of what 0B3 reads");
  CHECK(told(3) == "the addition of the gradients of 0B3");
  CHECK(told(4) == "the vote");
  CHECK(told(5) == "the update of stage 0");
}

TEST_CASE("a gather of weights waits for ranks that keep them for tasks, or update them",
          "[actors][driver]") {
  Plan plan =
      plan_of_lists({{{.op = Op::Start, .collective = CollectiveKind::AllGather, .group = 0}}, {}});
  plan.tables.buckets = {{.stages = {StageId(0)}, .chunks = {0, 1}}};
  const auto told = [&](const PlanGroup::Kind kind, const Sharing sharing, bool training) {
    plan.tables.training = training;
    plan.tables.groups = {{.kind = kind,
                           .bucket = 0,
                           .stages = {StageId(0)},
                           .parameters = {},
                           .sets = {{Rank(0), Rank(1)}},
                           .sharing = sharing}};
    const std::vector<UnfinishedRank> ranks{reported(0, 0, {Rank(1)})};
    return WaitGraph(ranks, plan).text({Rank(0), Rank(1)});
  };
  const std::string waits = "rank 0 waits for the weights of group 0 (stage 0) that rank 1 ";
  CHECK(told(PlanGroup::Kind::Copies, Sharing::States, true) == waits + "updates");
  CHECK(told(PlanGroup::Kind::Copies, Sharing::Weights, true) == waits + "keeps");
  CHECK(told(PlanGroup::Kind::Copies, Sharing::Weights, false) == waits + "keeps");
  CHECK(told(PlanGroup::Kind::Divided, Sharing::Nothing, false) == waits + "keeps");
}

TEST_CASE("a report about an instruction that the plan does not have tells nothing",
          "[actors][driver][bad-input]") {
  const Plan plan = wait_plan();
  const std::vector<UnfinishedRank> ranks{
      reported(0, 99, {Rank(1)}), reported(1, -7), reported(7, 0), {.rank = Rank(2)}};
  const WaitGraph graph(ranks, plan);
  for (const int rank : {0, 1, 2, 7}) {
    CHECK(graph.instruction(Rank(rank)) == nullptr);
    CHECK_FALSE(graph.last_begun(Rank(rank)));
  }
  CHECK(graph.text(graph.chain_from(Rank(0))) == "rank 0 waits for rank 1");
}

TEST_CASE("a wait is told by what the rank does, unless it waits for another", "[actors][driver]") {
  const Plan plan = plan_of_lists({{transfer(Op::Recv, 9, -1, CellKind::Forward, 0),
                                    transfer(Op::Recv, 8, 1, CellKind::Forward, 0),
                                    {.op = Op::Finish, .group = 4}},
                                   {}});
  const auto told = [&](int instruction, Ranks waiting_for) {
    const std::vector<UnfinishedRank> ranks{reported(0, instruction, waiting_for)};
    return WaitGraph(ranks, plan).text({Rank(0), waiting_for.front()});
  };
  CHECK(told(0, {kDriver}) == "rank 0 waits for what 0F3 reads from the driver");
  CHECK(told(1, {Rank(1)}) == "rank 0 waits for what 0F3 reads from rank 1");  // no such send
  CHECK(told(1, {kDriver}) == "rank 0 waits for the driver");
  CHECK(told(2, {Rank(1)}) == "rank 0 waits for the gradients of rank 1");  // no such group
}

}  // namespace
}  // namespace stagecraft
