#include "stagecraft/compiler/lower/lifetimes.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

SlotUse value(int number, Role role = Role::Activation) {
  return {.slot = SlotId(number), .value = {.role = role, .stage = StageId(0), .microbatch = {}}};
}

/// An instruction that reads and writes values by their numbers.
Instruction uses(std::vector<SlotUse> reads, std::vector<SlotUse> writes, Op op = Op::Run) {
  Instruction instruction;
  instruction.op = op;
  instruction.stream = StreamId(op == Op::Run ? 0 : 1);
  instruction.reads = std::move(reads);
  instruction.writes = std::move(writes);
  return instruction;
}

RankList list_of(std::vector<Instruction> instructions, int values) {
  RankList list;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    instructions[i].id = InstructionId(i);
  }
  list.instructions = std::move(instructions);
  list.slots = values;
  return list;
}

/// Returns each instruction with its slots: "2>0" reads slot 2 and writes slot 0, "-2@1" frees slot
/// 2 on stream 1.
std::string with_slots(RankList list) {
  assign_slots(list);
  std::string all;
  for (const Instruction& one : list.instructions) {
    all += all.empty() ? "" : " ";
    if (one.op == Op::Free) {
      all += fmt::format("-{}@{}", one.reads.at(0).slot.value, one.stream.value);
      continue;
    }
    for (const SlotUse& use : one.reads) {
      all += fmt::format("{}", use.slot.value);
    }
    all += ">";
    for (const SlotUse& use : one.writes) {
      all += fmt::format("{}", use.slot.value);
    }
  }
  return all + fmt::format(" of {}", list.slots);
}

TEST_CASE("P-4: a slot is freed after its last use, and taken again", "[compiler][lower]") {
  CHECK(with_slots(list_of({uses({}, {value(0)}),
                            uses({value(0)}, {value(1)}),
                            uses({value(0)}, {}),
                            uses({value(1)}, {value(2)}),
                            uses({value(2)}, {})},
                           3)) == ">0 0>1 0> -0@0 1>0 -1@0 0> -0@0 of 2");
}

TEST_CASE("the slot that has been free for longest is taken first", "[compiler][lower]") {
  CHECK(with_slots(list_of({uses({}, {value(0), value(1)}),
                            uses({value(1)}, {}),
                            uses({value(0)}, {}),
                            uses({}, {value(2)}),
                            uses({value(2)}, {})},
                           3)) == ">01 1> -1@0 0> -0@0 >1 1> -1@0 of 2");
}

TEST_CASE("a value that nobody reads is freed at once", "[compiler][lower]") {
  CHECK(with_slots(list_of({uses({}, {value(0)}), uses({}, {value(1)})}, 2)) ==
        ">0 -0@0 >0 -0@0 of 1");
}

TEST_CASE("saved state and gradients of parameters never share a slot with a tensor",
          "[compiler][lower]") {
  CHECK(with_slots(list_of({uses({}, {value(0, Role::Saved)}),
                            uses({value(0, Role::Saved)}, {}),
                            uses({}, {value(1)}),
                            uses({value(1)}, {}),
                            uses({}, {value(2, Role::ParameterGradient)}),
                            uses({value(2, Role::ParameterGradient)}, {})},
                           3)) == ">0 0> -0@0 >1 1> -1@0 >0 0> -0@0 of 2");
}

TEST_CASE("a slot is freed on the stream of its last use, but not on that of a receive",
          "[compiler][lower]") {
  CHECK(with_slots(list_of(
            {uses({}, {value(0)}), uses({value(0)}, {}, Op::Send), uses({}, {value(1)}, Op::Recv)},
            2)) == ">0 0> -0@1 >0 -0@0 of 1");
}

TEST_CASE("nothing is freed between the members of an overlap group", "[compiler][lower]") {
  std::vector<Instruction> instructions{uses({}, {value(0), value(1)}),
                                        uses({value(0)}, {value(2)}),
                                        uses({value(1)}, {value(3)}),
                                        uses({value(2), value(3)}, {})};
  CHECK(with_slots(list_of(instructions, 4)) == ">01 0>2 -0@0 1>0 -1@0 20> -2@0 -0@0 of 3");
  instructions[1].overlap = instructions[2].overlap = 0;
  CHECK(with_slots(list_of(instructions, 4)) == ">01 0>2 1>3 -0@0 -1@0 23> -2@0 -3@0 of 4");
  instructions[2].overlap = 1;  // another group
  CHECK(with_slots(list_of(instructions, 4)) == ">01 0>2 -0@0 1>0 -1@0 20> -2@0 -0@0 of 3");
}

TEST_CASE("instructions keep their numbers, and those that free have further ones",
          "[compiler][lower]") {
  RankList list = list_of({uses({}, {value(0)}), uses({value(0)}, {})}, 1);
  assign_slots(list);
  REQUIRE(list.instructions.size() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(list.instructions[static_cast<std::size_t>(i)].id == InstructionId(i));
  }
}

}  // namespace
}  // namespace stagecraft
