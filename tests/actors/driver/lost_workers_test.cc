#include "stagecraft/actors/driver/lost_workers.h"

#include <map>

#include "stagecraft/tests/actors/driver/wait_plan.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

UnfinishedRank at(int rank, int instruction, std::vector<Rank> waiting_for = {}) {
  return {Rank(rank),
          StatusReply{.rank = Rank(rank),
                      .instruction = instruction,
                      .seconds = 1.0,
                      .waiting_for = std::move(waiting_for)}};
}

const std::map<Rank, std::string> kCauses{{Rank(1), "process 4711 was killed by signal 9 (Killed)"},
                                          {Rank(2), "process 12 has exited with 3"}};

const Clock::Time kNow{std::chrono::hours(1)}, kDeadline = kNow + std::chrono::seconds(1);

LostWorkers lost(const std::vector<Rank>& ranks, bool mirrored = false) {
  LostWorkers all(mirrored);
  for (const Rank rank : ranks) {
    all.learn(rank, kCauses.at(rank));
    all.add(rank, kDeadline);
  }
  return all;
}

/// Returns the error for rank 1, lost in the middle of a step.
Error lost_worker(std::vector<UnfinishedRank> unfinished, const Plan& plan) {
  return lost({Rank(1)}).error_in_step(std::move(unfinished), plan);
}

TEST_CASE("a lost worker is told with its cause, its last task and who waits for it",
          "[actors][driver]") {
  const Plan plan = wait_plan();
  const Error error =
      lost_worker({at(0, 2, {Rank(1)}), at(1, 4), at(2, 4, {Rank(0), Rank(1)})}, plan);
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(1));
  CHECK(error.context().stage == StageId(1));
  CHECK(error.context().microbatch == kOnly);
  CHECK(error.context().task == "1B3");
  CHECK(error.message() ==
        "rank 1 is lost: process 4711 was killed by signal 9 (Killed); the last task that it is "
        "known to have begun is 1B3; rank 0 waits for 1B3 from rank 1; not done either: rank 2");
  CHECK(error.advice() == "cluster.replace(Rank(1)), then trainer.load(file)");
}

TEST_CASE("the whole chain that ends at a lost worker is told", "[actors][driver]") {
  LostWorkers of_unknown_cause(false);
  of_unknown_cause.add(Rank(2), kDeadline);
  const Error error = of_unknown_cause.error_in_step(
      {at(0, 2, {Rank(1)}), at(1, 3, {Rank(2)}), {Rank(2)}}, wait_plan());
  CHECK_THAT(error.what(),
             ContainsSubstring("rank 2 is lost: its worker has ended;") &&
                 ContainsSubstring("rank 0 waits for 1B3 from rank 1, which waits for 2B3 from "
                                   "rank 2; to continue: cluster.replace(Rank(2))"));
}

TEST_CASE("a task is begun where its rank was seen behind it, or a peer has taken what is (WG-2)",
          "[actors][driver]") {
  const Plan plan = wait_plan();
  const auto last = [&](const UnfinishedRank& ended, const UnfinishedRank& other) {
    return lost_worker({ended, other}, plan).context().task;
  };
  CHECK(last({Rank(1)}, at(2, 0, {Rank(1)})).empty());  // has taken nothing
  CHECK(last({Rank(1)}, at(2, 1)) == "1F3");            // has taken the forward's output
  CHECK(last({Rank(1)}, at(0, 3)) == "1B3");            // has taken the backward's gradient
  CHECK(last(at(1, 0, {Rank(0)}), at(0, 0)).empty());   // waited for its first tensor
  CHECK(last(at(1, 1), at(2, 0, {Rank(1)})) == "1F3");  // was seen in the forward
  CHECK(last(at(1, 3, {Rank(2)}), at(2, 2)) == "1F3");  // was seen past the forward
  CHECK(last(at(1, 1), at(0, 3)) == "1B3");             // was seen in it, is known to be further
  CHECK(last(at(1, -1), at(0, 2, {Rank(1)})).empty());  // was seen before its first instruction
  CHECK(last(at(1, 99), at(0, 2, {Rank(1)})).empty());  // was seen at an unknown instruction
  CHECK_THAT(lost_worker({{Rank(1)}}, plan).message(),
             ContainsSubstring("it is not known to have begun a task of this step; nobody is known "
                               "to wait for it yet"));
}

TEST_CASE("what an overlap group issued first is not known by its place in the list (WG-2)",
          "[actors][driver]") {
  Plan plan = wait_plan();
  for (const std::size_t i : {3U, 4U, 5U}) {
    plan.lists[1].instructions[i].overlap = 0;
  }
  const auto last = [&](int seen_at) { return lost_worker({at(1, seen_at)}, plan).context().task; };
  CHECK(last(4) == "1B3");
  CHECK(last(3) == "1F3");
  plan.lists[0].instructions[2].overlap = 1;  // rank 0 may have taken another tensor first
  plan.lists[0].instructions[3].overlap = 1;
  CHECK(lost_worker({{Rank(1)}, at(0, 3)}, plan).context().task.empty());
}

TEST_CASE("a worker lost behind its part of the step, or with others", "[actors][driver]") {
  const Plan plan = wait_plan();
  CHECK_THAT(lost_worker({at(0, 4, {Rank(1)})}, plan).message(),
             ContainsSubstring("(Killed), after it had done its part of the step; rank 0 waits for "
                               "the vote of rank 1"));
  const Error both =
      lost({Rank(1), Rank(2)})
          .error_in_step({at(0, 2, {Rank(1)}), at(1, 3, {Rank(2)}), {Rank(2)}}, plan);
  CHECK(both.context().rank == Rank(1));
  CHECK_THAT(both.what(),
             ContainsSubstring("rank 2 is lost: process 12 has exited with 3; to continue: "
                               "cluster.replace(Rank(1)), cluster.replace(Rank(2)), then "
                               "trainer.load(file)"));
  CHECK(lost({Rank(1)}).error_of(Rank(1)).message() ==
        "rank 1 is lost: process 4711 was killed by signal 9 (Killed)");
  CHECK(lost({Rank(1)}).error_of(Rank(1)).advice() ==
        "cluster.replace(Rank(1)), then trainer.load(file)");
}

TEST_CASE("a cause is awaited from the loss until it comes, or its deadline (LW-1)",
          "[actors][driver]") {
  LostWorkers all(false);
  CHECK_FALSE(all.awaited_until(kNow));
  SECTION("it comes after the loss") {
    all.add(Rank(1), kDeadline);
    CHECK(all.awaited_until(kNow) == kDeadline);
    all.learn(Rank(1), "process 4711 was killed");
    CHECK_FALSE(all.awaited_until(kNow));
    CHECK(all.error_of(Rank(1)).message() == "rank 1 is lost: process 4711 was killed");
  }
  SECTION("it comes before the loss") {
    all.learn(Rank(1), "process 4711 was killed");
    CHECK_FALSE(all.has(Rank(1)));
    all.add(Rank(1), kDeadline);
    CHECK_FALSE(all.awaited_until(kNow));
    CHECK_THAT(all.error_of(Rank(1)).message(), ContainsSubstring("process 4711 was killed"));
  }
  SECTION("it does not come") {
    all.add(Rank(1), kDeadline);
    CHECK_FALSE(all.awaited_until(kDeadline));
    CHECK(all.error_of(Rank(1)).message() == "rank 1 is lost: its worker has ended");
  }
  SECTION("nobody knows it") {
    all.add(Rank(1), kDeadline);
    all.learn(Rank(1), "");
    CHECK_FALSE(all.awaited_until(kNow));
  }
  SECTION("several are awaited until the last deadline") {
    all.add(Rank(1), kDeadline);
    all.add(Rank(2), kDeadline + std::chrono::seconds(1));
    CHECK(all.awaited_until(kNow) == kDeadline + std::chrono::seconds(1));
    all.learn(Rank(2), "process 12 has exited with 3");
    CHECK(all.awaited_until(kNow) == kDeadline);
  }
}

TEST_CASE("what is logged of a lost worker names no call of a program", "[actors][driver]") {
  for (const Error& all : {lost({Rank(1)}).refusal(),
                           lost({Rank(1)}).error_in_step({at(0, 4, {Rank(1)})}, wait_plan())}) {
    CHECK_THAT(in_words(all, {}).what(),
               !ContainsSubstring("cluster") && !ContainsSubstring("to continue"));
    CHECK_THAT(in_words(all, {.advice = "do it"}).what(),
               ContainsSubstring("; to continue: do it") && !ContainsSubstring("cluster"));
  }
}

TEST_CASE("where neighbors keep copies, recover() is a way back", "[actors][driver][mirror]") {
  const std::string back =
      "cluster.replace(Rank(2)), cluster.replace(Rank(1)), then trainer.recover() or "
      "trainer.load(file)";
  const LostWorkers both = lost({Rank(2), Rank(1)}, /*mirrored=*/true);
  CHECK(both.refusal().context().rank == Rank(2));
  CHECK(both.refusal().message() ==
        "no step is run: rank 2 is lost: process 12 has exited with 3; rank 1 is lost: process "
        "4711 was killed by signal 9 (Killed)");
  CHECK(both.refusal().advice() == back);
  CHECK(both.error_in_step({{Rank(1)}, {Rank(2)}}, wait_plan()).advice() == back);
}

}  // namespace
}  // namespace stagecraft
