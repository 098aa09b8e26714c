#include "stagecraft/compiler/lower/waits.h"

#include <algorithm>
#include <unordered_map>

#include "stagecraft/compiler/plan/issue_order.h"

namespace stagecraft {
namespace {

/// SlotUsers lists the users of a slot since it was last empty, as positions in the list.
struct SlotUsers {
  std::vector<std::size_t> users;  ///< the writer first
  std::vector<std::size_t> freed;  ///< the last Free of the slot, if any
};

/// Returns the positions that `instruction` must not overtake, the latest first, since a wait for
/// it often covers the others.
std::vector<std::size_t> must_follow(const Instruction& instruction,
                                     std::unordered_map<SlotId, SlotUsers>& slots) {
  std::vector<std::size_t> earlier;
  const auto add = [&](const std::vector<std::size_t>& more) {
    earlier.insert(earlier.end(), more.begin(), more.end());
  };
  for (const SlotUse& use : instruction.reads) {
    const std::vector<std::size_t>& users = slots[use.slot].users;
    if (instruction.op == Op::Free) {
      add(users);
    } else {
      earlier.push_back(users.front());
    }
  }
  for (const SlotUse& use : instruction.writes) {
    add(slots[use.slot].freed);
  }
  std::ranges::sort(earlier, std::ranges::greater());
  earlier.erase(std::unique(earlier.begin(), earlier.end()),
                earlier.end());  // clang 14 has no ranges::unique
  return earlier;
}

void note_uses(const Instruction& instruction,
               std::size_t position,
               std::unordered_map<SlotId, SlotUsers>& slots) {
  for (const SlotUse& use : instruction.reads) {
    SlotUsers& slot = slots[use.slot];
    if (instruction.op == Op::Free) {
      slot = {.users = {}, .freed = {position}};
    } else {
      slot.users.push_back(position);
    }
  }
  for (const SlotUse& use : instruction.writes) {
    slots[use.slot] = {.users = {position}, .freed = {}};
  }
}

}  // namespace

void set_waits(RankPlan& rank) {
  IssueOrder order;
  std::unordered_map<SlotId, SlotUsers> slots;
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    Instruction& instruction = rank.instructions[i];
    for (const std::size_t earlier : must_follow(instruction, slots)) {
      const InstructionId id = rank.instructions[earlier].id;
      if (!order.is_over(id, instruction)) {
        instruction.waits.push_back(id);
      }
    }
    order.add(instruction);
    note_uses(instruction, i, slots);
  }
}

}  // namespace stagecraft
