#include "stagecraft/actors/driver/late_step.h"

#include "stagecraft/tests/actors/driver/wait_plan.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Gives each rank r two instructions: the forward of stage r on microbatch 3, and the vote.
Plan small_plan(int ranks) {
  std::vector<std::vector<Instruction>> lists;
  for (int r = 0; r < ranks; ++r) {
    lists.push_back({run(CellKind::Forward, r), {.op = Op::Vote}});
  }
  return plan_of_lists(std::move(lists));
}

UnfinishedRank stuck_at(int rank, int instruction, std::vector<Rank> waiting_for = {}) {
  return {
      Rank(rank),
      StatusReply{
          .rank = Rank(rank), .instruction = instruction, .waiting_for = std::move(waiting_for)}};
}

UnfinishedRank computing(int rank, double seconds) {
  return {Rank(rank),
          StatusReply{.rank = Rank(rank), .instruction = 0, .seconds = seconds, .waiting_for = {}}};
}

UnfinishedRank waiting(int rank, double seconds, std::vector<Rank> waiting_for) {
  return {Rank(rank),
          StatusReply{.rank = Rank(rank),
                      .instruction = 1,
                      .seconds = seconds,
                      .waiting_for = std::move(waiting_for)}};
}

Error late(std::vector<UnfinishedRank> silent) {
  return late_step(std::move(silent), small_plan(4), std::chrono::milliseconds(250));
}

TEST_CASE("a rank that hangs in its last task is blamed, not the lowest one in the vote",
          "[actors][driver]") {
  const Error error = late({waiting(0, 2.0, {Rank(2)}),
                            waiting(1, 1.5, {Rank(2)}),
                            computing(2, 2.5),
                            waiting(3, 1.0, {Rank(2)})});
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.context().rank == Rank(2));
  CHECK(error.context().stage == StageId(2));
  CHECK(error.context().microbatch == Microbatch(3));
  CHECK(
      error.message() ==
      "the step was not done within 250 ms: rank 0 waits for the vote of rank 2, which has been in "
      "2F3 for 2.5 s and waits for nobody; not done either: rank 1, 3; find out what "
      "holds rank 2 up, or set a longer step_deadline");
}

TEST_CASE("a late step names what its rank does in the words of schedules", "[actors][driver]") {
  Plan plan = small_plan(4);
  for (auto& list : plan.lists) {
    for (Instruction& i : list.instructions) {
      i.reads.emplace_back();
    }
  }
  const Error error = late_step({computing(2, 2.5)}, plan, std::chrono::milliseconds(250));
  CHECK(error.context().task == "2F3");
  CHECK_THAT(error.what(), ContainsSubstring("has been in 2F3 for") && !ContainsSubstring("i0"));
}

TEST_CASE("the blame follows the chain of waits to its end (LS-1)", "[actors][driver]") {
  const Error error = late({waiting(0, 3.0, {Rank(3)}),
                            computing(1, 0.5),
                            waiting(2, 3.0, {kDriver, Rank(1)}),
                            waiting(3, 3.0, {Rank(2)})});
  CHECK(error.context().rank == Rank(1));
  CHECK_THAT(
      error.message(),
      ContainsSubstring("rank 0 waits for the vote of rank 3, which waits for the vote of rank 2, "
                        "which waits for the vote of the driver, rank 1; rank 1 has been in"));
}

TEST_CASE("of several that hold others up the one most wait for is blamed, then the longest",
          "[actors][driver]") {
  CHECK(late({computing(0, 9.0),
              waiting(1, 1.0, {Rank(3)}),
              waiting(2, 1.0, {Rank(3)}),
              computing(3, 1.0)})
            .context()
            .rank == Rank(3));
  CHECK(late({computing(0, 1.0), computing(1, 4.0), computing(2, 2.0)}).context().rank == Rank(1));
}

TEST_CASE("ranks that wait for each other are told, and none is blamed", "[actors][driver]") {
  const Error error = late({waiting(0, 2.0, {Rank(1)}), stuck_at(1, 0, {Rank(0)})});
  CHECK_FALSE(error.context().rank);
  CHECK_THAT(error.message(), ContainsSubstring("so rank 0 waits for itself"));
}

TEST_CASE("ranks that wait for each other's votes are told that votes are under way",
          "[actors][driver]") {
  const Error votes = late({waiting(0, 2.0, {Rank(1)}), waiting(1, 2.0, {Rank(0)})});
  CHECK_FALSE(votes.context().rank);
  CHECK_THAT(votes.message(), ContainsSubstring("; so their votes are under way; find out"));
}

TEST_CASE("a tensor that its sender has passed is under way", "[actors][driver]") {
  const UnfinishedRank receiver = stuck_at(0, 2, {Rank(1)});  // for 1B3
  const auto late_with = [&](const UnfinishedRank& sender) {
    return late_step({receiver, sender}, wait_plan(), std::chrono::milliseconds(250));
  };
  const Plan plan = wait_plan();
  const auto& list = plan.list_of(Rank(1)).instructions;
  const auto sends = std::ranges::find_if(list, [](const Instruction& i) {
    return i.op == Op::Send && i.task.kind == CellKind::Backward;
  });
  REQUIRE(sends != list.end());
  const int position = static_cast<int>(sends - list.begin());
  CHECK_THAT(late_with(stuck_at(1, position, {Rank(0)})).message(),
             ContainsSubstring("waits for itself"));
  const Error sent = late_with(stuck_at(1, position + 1, {Rank(0)}));
  CHECK_THAT(sent.message(),
             ContainsSubstring("waits for 1B3 from rank 1, which has sent it: it is under way") &&
                 ContainsSubstring("find out what holds the connection up"));
  CHECK_FALSE(sent.context().rank);
}

TEST_CASE("a rank that has sent what it owed and computes on is blamed for what it does (WG-3)",
          "[actors][driver]") {
  UnfinishedRank computes = stuck_at(1, 6);
  computes.status->seconds = 20.0;
  const Error error =
      late_step({stuck_at(0, 2, {Rank(1)}), computes}, wait_plan(), std::chrono::milliseconds(250));
  CHECK(error.context().rank == Rank(1));
  CHECK_THAT(error.message(),
             ContainsSubstring("rank 1 has been in the vote for 20.0 s and waits for nobody") &&
                 ContainsSubstring("find out what holds rank 1 up"));
}

TEST_CASE(
    "a rank whose order the driver decides is not known to have sent by its place in the list",
    "[actors][driver]") {
  const Error error = late_step({stuck_at(0, 2, {Rank(1)}), stuck_at(1, 6, {Rank(0)})},
                                wait_plan(),
                                std::chrono::milliseconds(250),
                                /*in_order=*/false);
  CHECK_THAT(error.message(), !ContainsSubstring("which has sent it"));
}

TEST_CASE("a chain that ends outside of the silent ranks blames none of them", "[actors][driver]") {
  const Error driver = late({waiting(0, 2.0, {kDriver}), waiting(1, 2.0, {Rank(0)})});
  CHECK_FALSE(driver.context().rank);
  CHECK_THAT(driver.message(), ContainsSubstring("the driver, which has not released its next"));
  const Error between =
      late_step({stuck_at(1, 2, {kDriver})}, wait_plan(), std::chrono::milliseconds(250));
  CHECK_THAT(between.message(), ContainsSubstring("has not released its next"));
  const Error input =
      late_step({stuck_at(1, 0, {kDriver})}, wait_plan(), std::chrono::milliseconds(250));
  CHECK_THAT(input.message(), ContainsSubstring("the driver, which has sent what it had"));
  const Error answered = late({waiting(0, 2.0, {Rank(3)})});
  CHECK_FALSE(answered.context().rank);
  CHECK_THAT(answered.message(), ContainsSubstring("rank 3, which has answered"));
}

TEST_CASE("a rank between its instructions, in one the plan has not, or of whom nothing is known",
          "[actors][driver]") {
  const UnfinishedRank between{Rank(0),
                               StatusReply{.rank = Rank(0), .instruction = -1, .waiting_for = {}}};
  const UnfinishedRank beyond{Rank(1),
                              StatusReply{.rank = Rank(1), .instruction = 7, .waiting_for = {}}};
  for (const UnfinishedRank& silent : {between, beyond}) {
    const Error error = late({silent});
    CHECK(error.context().rank == silent.rank);
    CHECK_FALSE(error.context().stage);
    CHECK_THAT(error.message(), ContainsSubstring("is between two tasks"));
  }
}

TEST_CASE("a rank whose agent owes its answer is silent, and blamed before any that is slow",
          "[actors][driver]") {
  UnfinishedRank silent = stuck_at(2, 1, {});
  silent.silent_for = 4.1;
  const std::vector<UnfinishedRank> row{
      stuck_at(0, 2, {Rank(1)}), stuck_at(1, 3, {Rank(2)}), silent};
  const Error error = late_step(row, wait_plan(), std::chrono::seconds(5));
  CHECK(error.context().rank == Rank(2));
  CHECK_THAT(error.message(),
             ContainsSubstring("rank 0 waits for 1B3 from rank 1, which waits for 2B3 from rank 2, "
                               "silent since 4.1 s; find out what holds rank 2 up"));
  CHECK_THAT(
      late_step({stuck_at(0, 3), silent}, wait_plan(), std::chrono::seconds(5)).message(),
      ContainsSubstring("rank 2 is silent: its agent has not answered for 4.1 s and was last "
                        "in 2F3; not done either: rank 0"));
  // The wait that its last report showed may be over (WG-1).
  silent.status->waiting_for = {Rank(0)};
  CHECK(late_step({stuck_at(0, 3), silent}, wait_plan(), std::chrono::seconds(5)).context().rank ==
        Rank(2));
  const UnfinishedRank never{Rank(1), std::nullopt, 2.0};
  CHECK_THAT(late_step({silent, never}, wait_plan(), std::chrono::seconds(5)).message(),
             ContainsSubstring("is silent: its agent has not answered for") &&
                 ContainsSubstring("; silent, too: rank"));
}

TEST_CASE("a rank that holds a sum up is told with the sum and everyone who waits in it",
          "[actors][driver][copies]") {
  Plan plan = plan_of_lists(
      {{run(CellKind::Backward, 0), {.op = Op::Start, .group = 0}, {.op = Op::Finish, .group = 0}},
       {run(CellKind::Backward, 1), {.op = Op::Vote}},
       {run(CellKind::Forward, 2), {.op = Op::Start, .group = 0}, {.op = Op::Finish, .group = 0}},
       {run(CellKind::Backward, 3),
        {.op = Op::Start, .group = 0},
        {.op = Op::Finish, .group = 0}}});
  plan.tables.buckets = {{.stages = {StageId(0)}, .chunks = {}}};
  plan.tables.groups = {
      {.bucket = 0, .stages = {StageId(0)}, .sets = {{Rank(0), Rank(2), Rank(3)}}}};
  const std::string message = late_step({stuck_at(0, 2, {Rank(2)}),
                                         stuck_at(1, 1, {Rank(0), Rank(2), Rank(3)}),
                                         computing(2, 4.0),
                                         stuck_at(3, 2, {Rank(2)})},
                                        plan,
                                        std::chrono::seconds(5))
                                  .message();
  CHECK_THAT(message,
             ContainsSubstring("rank 0 waits in the sum of group 0 (stage 0) for the gradients of "
                               "rank 2, which has been in 2F3 for 4.0 s and waits for "
                               "nobody; rank 3 waits in the sum of group 0 (stage 0) for the "
                               "gradients of rank 2; not done either: rank 1; find out"));
}

TEST_CASE("ranks that wait for each other in a sum are told that its parts are under way",
          "[actors][driver][copies]") {
  const std::vector<Instruction> sum{
      run(CellKind::Backward, 0), {.op = Op::Start, .group = 0}, {.op = Op::Finish, .group = 0}};
  Plan plan = plan_of_lists({sum, sum});
  plan.tables.buckets = {{.stages = {StageId(0)}, .chunks = {}}};
  plan.tables.groups = {{.bucket = 0, .stages = {StageId(0)}, .sets = {{Rank(0), Rank(1)}}}};
  const auto late_at = [&](int of_second) {
    return late_step({stuck_at(0, 2, {Rank(1)}), stuck_at(1, of_second, {Rank(0)})},
                     plan,
                     std::chrono::seconds(5));
  };
  CHECK_THAT(late_at(2).message(),
             ContainsSubstring("; so what they send each other is under way; find out"));
  CHECK_FALSE(late_at(2).context().rank);
  CHECK_THAT(late_at(0).message(), ContainsSubstring("waits for itself"));  // it has sent nothing
}

TEST_CASE("a step that is done by the time its ranks are asked blames nobody", "[actors][driver]") {
  CHECK_THAT(late({}).message(), ContainsSubstring("but is by now"));
}

}  // namespace
}  // namespace stagecraft
