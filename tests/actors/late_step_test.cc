#include "stagecraft/actors/late_step.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Two ranks of one instruction each: a forward of stage 0, and a receive of stage 1.
Plan small_plan() {
  Plan plan;
  const Task forward{CellKind::Forward, StageId(0), Microbatch(2)};
  const Task receiving{CellKind::Forward, StageId(1), Microbatch(2)};
  plan.edges = {{.id = EdgeId(0), .from = StageId(0), .to = StageId(1)}};
  plan.ranks = {
      {.rank = Rank(0), .instructions = {{.op = Op::Run, .task = forward}}},
      {.rank = Rank(1), .instructions = {{.op = Op::Recv, .task = receiving, .peer = Rank(0)}}}};
  return plan;
}

Error late(std::vector<StatusReply> silent) {
  return late_step(std::move(silent), small_plan(), std::chrono::milliseconds(250));
}

TEST_CASE("the rank that waits for nobody holds up a late step", "[actors][driver]") {
  const Error error = late({{.rank = Rank(1), .instruction = 0, .seconds = 2.0, .waiting_for = 0},
                            {.rank = Rank(0), .instruction = 0, .seconds = 2.5}});
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.context().rank == Rank(0));
  CHECK(error.context().stage == StageId(0));
  CHECK(error.context().microbatch == Microbatch(2));
  CHECK_THAT(error.message(),
             ContainsSubstring("250 ms") && ContainsSubstring("for 2.5 s;") &&
                 ContainsSubstring("for 2.0 s, waiting for rank 0"));
}

TEST_CASE("when every rank waits nobody is blamed, and who waits for whom is told",
          "[actors][driver]") {
  const Error error = late({{.rank = Rank(0), .instruction = 0, .waiting_for = -1},
                            {.rank = Rank(1), .instruction = 0, .waiting_for = 0}});
  CHECK_FALSE(error.context().rank);
  CHECK_THAT(error.message(), ContainsSubstring("waiting for the driver"));
}

TEST_CASE("a rank between its instructions, or in one the plan has not, is said to be",
          "[actors][driver]") {
  const Error error =
      late({{.rank = Rank(0), .instruction = -1}, {.rank = Rank(1), .instruction = 7}});
  CHECK(error.context().rank == Rank(0));
  CHECK_FALSE(error.context().stage);
  CHECK_THAT(error.message(), ContainsSubstring("rank 1 is in none of its instructions"));
}

}  // namespace
}  // namespace stagecraft
