#include "stagecraft/actors/executor/run/decided_tasks.h"

#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Positions = std::vector<std::size_t>;

Task forward(int stage, int microbatch) {
  return {CellKind::Forward, StageId(stage), Microbatch(microbatch)};
}

Instruction instruction(Op op, const Task& task, std::vector<int> reads, std::vector<int> writes) {
  Instruction made;
  made.op = op;
  made.task = task;
  for (const int slot : reads) {
    made.reads.push_back({SlotId(slot), {}});
  }
  for (const int slot : writes) {
    made.writes.push_back({SlotId(slot), {}});
  }
  return made;
}

/// Two stages on one rank read what is received for the first one.
std::vector<Instruction> shared_receive() {
  return {instruction(Op::Recv, forward(1, 0), {}, {0}),
          instruction(Op::Run, forward(1, 0), {0}, {1}),
          instruction(Op::Send, forward(1, 0), {1}, {}),
          instruction(Op::Free, {}, {1}, {}),
          instruction(Op::Run, forward(2, 0), {0}, {2}),
          instruction(Op::Free, {}, {0}, {}),
          instruction(Op::Send, forward(2, 0), {2}, {}),
          instruction(Op::Free, {}, {2}, {}),
          instruction(Op::Vote, {}, {}, {})};
}

/// Runs a task and returns the positions in the order in which the rank issues them.
Positions issued(DecidedTasks& tasks, std::size_t run) {
  Positions all;
  for (const std::size_t position : tasks.take(run)) {
    all.push_back(position);
    const Positions frees = tasks.frees_after(position);
    all.insert(all.end(), frees.begin(), frees.end());
  }
  return all;
}

TEST_CASE(
    "tasks run in any order, each with what it receives, and values are freed after their "
    "last user (DTA-1)",
    "[executor][decided]") {
  const std::vector<Instruction> list = shared_receive();
  SECTION("that of the list") {
    DecidedTasks tasks(list);
    CHECK(issued(tasks, 1) == Positions{0, 1, 2, 3});
    CHECK(issued(tasks, 4) == Positions{4, 5, 6, 7});
    CHECK(tasks.rest() == Positions{8});
  }
  SECTION("the other one") {
    DecidedTasks tasks(list);
    CHECK(issued(tasks, 4) == Positions{0, 4, 6, 7});
    CHECK(issued(tasks, 1) == Positions{1, 5, 2, 3});
    CHECK(tasks.rest() == Positions{8});
  }
}

TEST_CASE("a task that does not exist, has run, or is left, is refused", "[executor][decided]") {
  const std::vector<Instruction> list = shared_receive();
  DecidedTasks tasks(list);
  (void)tasks.take(1);
  for (const std::size_t run : {std::size_t{1}, std::size_t{0}, std::size_t{99}}) {
    CHECK_THAT(refusal([&] { (void)tasks.take(run); }, Errc::PlanInvalid),
               Catch::Matchers::ContainsSubstring("no task that is left"));
  }
  CHECK_THAT(refusal([&] { (void)tasks.rest(); }, Errc::PlanInvalid),
             Catch::Matchers::ContainsSubstring("2F0 has not run"));
  const std::vector<Instruction> stray{instruction(Op::Recv, forward(0, 0), {}, {0})};
  CHECK_THAT(refusal([&] { DecidedTasks of_stray(stray); }, Errc::PlanInvalid),
             Catch::Matchers::ContainsSubstring("which it does not run"));
}

}  // namespace
}  // namespace stagecraft
