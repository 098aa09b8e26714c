#include "stagecraft/actors/executor/run/overlap_group.h"

#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

Instruction of(CellKind kind, int stage, int microbatch, Op op, int overlap = 0) {
  Instruction instruction;
  instruction.op = op;
  instruction.task = {kind, StageId(stage), Microbatch(microbatch)};
  instruction.overlap = overlap;
  return instruction;
}

/// Returns the order in which the group's tasks run if those in `late` have not arrived.
std::string order(const std::vector<Instruction>& list, const std::string& late) {
  OverlapGroup group(list, 0);
  std::string text;
  while (!group.done()) {
    const auto block = group.take([&](const OverlapGroup::Block& b) {
      return late.find(to_string(list[b.begin].task)) == std::string::npos;
    });
    text += (text.empty() ? "" : " ") + to_string(list[block.begin].task);
  }
  return text;
}

const std::vector<Instruction> kList{of(CellKind::Forward, 0, 7, Op::Recv),
                                     of(CellKind::Forward, 0, 7, Op::Run),
                                     of(CellKind::Forward, 0, 7, Op::Send),
                                     of(CellKind::Backward, 3, 2, Op::Recv),
                                     of(CellKind::Backward, 3, 2, Op::Run),
                                     of(CellKind::Backward, 3, 3, Op::Run),
                                     of(CellKind::Forward, 0, 8, Op::Run, 1)};

TEST_CASE("a group ends where another begins, and its blocks are its tasks",
          "[executor][overlap]") {
  OverlapGroup group(kList, 0);
  CHECK(group.end() == 6);
  const auto first = group.take([](const auto&) { return true; });
  CHECK(first.begin == 0);
  CHECK(first.end == 3);
  CHECK(OverlapGroup(kList, 6).end() == 7);
}

TEST_CASE("tasks whose tensors are here go before those that wait", "[executor][overlap]") {
  CHECK(order(kList, "") == "0F7 3B2 3B3");
  CHECK(order(kList, "0F7") == "3B2 3B3 0F7");
  CHECK(order(kList, "0F7 3B2 3B3") == "0F7 3B2 3B3");
}

TEST_CASE("backwards of one stage keep their order, whatever is here", "[executor][overlap]") {
  CHECK(order(kList, "3B2") == "0F7 3B2 3B3");
  CHECK(order(kList, "0F7 3B2") == "0F7 3B2 3B3");
}

}  // namespace
}  // namespace stagecraft
