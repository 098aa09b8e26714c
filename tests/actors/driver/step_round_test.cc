#include "stagecraft/actors/driver/step_round.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr Submission kSubmission{5};

StepRound round_of(int ranks) {
  return {kSubmission, Step(2), true, ranks, /*mirrored=*/true};
}

StepReport good(int rank) {
  return {.rank = Rank(rank), .submission = kSubmission, .committed = true};
}

StepReport bad(int rank, Errc code, const std::string& message = "no") {
  return {.rank = Rank(rank), .submission = kSubmission, .error = to_chain(Error(code, message))};
}

TEST_CASE("a round succeeds when every rank has answered well", "[actors][round]") {
  StepRound round = round_of(2);
  round.answered(good(0));
  CHECK_FALSE(round.complete());
  CHECK((round.silent() == std::vector{Rank(1)}));
  round.answered(good(1));
  CHECK(round.complete());
  CHECK(round.succeeded());
  CHECK_FALSE(round.needs_abort());
}

TEST_CASE("a rank's first answer counts, and answers to other steps do not (SR-1)",
          "[actors][round]") {
  StepRound round = round_of(2);
  StepReport late = bad(0, Errc::WorkerFailed);
  late.submission = Submission(4);
  round.answered(late);
  CHECK_FALSE(round.needs_abort());
  round.answered(good(0));
  round.answered(bad(0, Errc::WorkerFailed));
  CHECK_FALSE(round.primary());
  CHECK_FALSE(round.complete());
}

TEST_CASE("an answer from a rank that is not there changes nothing", "[actors][round]") {
  StepRound round = round_of(1);
  round.answered(good(1));
  round.answered(good(-1));
  CHECK_FALSE(round.complete());
}

TEST_CASE("the failure that began it is reported, not those it led to (SR-2)", "[actors][round]") {
  StepRound round = round_of(3);
  const bool aborted_first = GENERATE(false, true);
  if (aborted_first) {
    round.answered(bad(2, Errc::WorkerAborted));
  }
  round.answered(bad(1, Errc::DeviceOutOfMemory, "the cause"));
  CHECK(round.needs_abort());
  round.answered(bad(0, Errc::WorkerFailed, "later"));
  if (!aborted_first) {
    round.answered(bad(2, Errc::WorkerAborted));
  }
  REQUIRE(round.complete());
  REQUIRE(round.primary());
  CHECK(round.primary()->code() == Errc::DeviceOutOfMemory);
  CHECK(round.primary()->context().rank == Rank(1));
  CHECK(round.primary()->context().step == Step(2));
  CHECK_FALSE(round.succeeded());
  CHECK_FALSE(round.lost());
}

TEST_CASE("a connection that went with its peer is no cause where there is one (SR-2)",
          "[actors][round]") {
  StepRound round = round_of(3);
  round.answered(bad(0, Errc::TransportClosed));
  CHECK(round.lacks_a_cause());
  CHECK(round.needs_abort());
  round.answered(bad(1, Errc::WorkerAborted));
  CHECK(round.primary()->code() == Errc::TransportClosed);
  CHECK_FALSE(round.cannot_succeed());
  round.gave_up(Rank(2), Error(Errc::WorkerLost, "killed"));
  CHECK_FALSE(round.lacks_a_cause());
  CHECK(round.cannot_succeed());
  CHECK(round.primary()->message() == "killed");
}

TEST_CASE("of several ranks that found something not finite the lowest is named (SR-2)",
          "[actors][round]") {
  StepRound round = round_of(3);
  round.answered(bad(2, Errc::NonFinite));
  round.answered(bad(0, Errc::NonFinite));
  round.answered(bad(1, Errc::NonFinite));
  CHECK(round.primary()->context().rank == Rank(0));
  CHECK_FALSE(round.lost());
}

TEST_CASE("a gradient that is not finite needs no abort, as all find it; a loss does",
          "[actors][round]") {
  StepRound round = round_of(2);
  round.answered(bad(0, Errc::NonFinite));
  CHECK_FALSE(round.needs_abort());
  StepReport loss = bad(1, Errc::NonFinite);
  loss.error = to_chain(Error(Errc::NonFinite, "the loss").with({.microbatch = Microbatch(3)}));
  round.answered(loss);
  CHECK(round.needs_abort());
}

TEST_CASE("what is not finite is told by the rank that has it, which knows its name (SR-2)",
          "[actors][round]") {
  StepRound round = round_of(3);
  StepReport knows = bad(1, Errc::NonFinite);
  knows.error = to_chain(Error(Errc::NonFinite, "the gradient of w").with({.stage = StageId(3)}));
  round.answered(bad(0, Errc::NonFinite));
  round.answered(knows);
  round.answered(bad(2, Errc::NonFinite));
  CHECK(round.primary()->message() == "the gradient of w");
  CHECK(round.primary()->context().rank == Rank(1));
}

TEST_CASE("ranks that disagree on the commit lose the weights (SR-3)", "[actors][round]") {
  StepRound round = round_of(2);
  round.answered(good(0));
  round.answered(bad(1, Errc::WorkerFailed));
  REQUIRE(round.complete());
  REQUIRE(round.lost());
  CHECK(round.lost()->message() ==
        "1 of 2 ranks have updated their weights in step 2 and the others have not");
  CHECK(round.lost()->advice() == "trainer.recover() or trainer.load(file)");
  CHECK_FALSE(round.succeeded());
}

TEST_CASE("a rank that failed inside its update loses the weights, and the others finish",
          "[actors][round]") {
  StepRound round = round_of(2);
  round.answered(bad(0, Errc::WorkerLost, "inside the update"));
  CHECK_FALSE(round.needs_abort());
  CHECK_FALSE(round.complete());
  round.answered(good(1));
  REQUIRE(round.complete());
  CHECK(round.lost()->message() == "inside the update");
}

TEST_CASE("a rank that never answers loses the weights", "[actors][round]") {
  StepRound round = round_of(2);
  round.answered(bad(0, Errc::WorkerAborted));
  round.gave_up(Rank(1), Error(Errc::WorkerLost, "silent"));
  CHECK(round.needs_abort());
  round.gave_up(Rank(1), Error(Errc::WorkerLost, "again"));
  REQUIRE(round.complete());
  REQUIRE(round.lost());
  CHECK(round.lost()->message() == "silent");
}

TEST_CASE("a step that every rank finished after all is a success, blamed or not",
          "[actors][round]") {
  StepRound round = round_of(1);
  round.blame(Error(Errc::ClusterTimeout, "late"));
  CHECK(round.needs_abort());
  round.answered(good(0));
  CHECK(round.succeeded());
}

}  // namespace
}  // namespace stagecraft
