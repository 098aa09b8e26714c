#include "stagecraft/compiler/plan/own_slots.h"

#include <vector>

namespace stagecraft {

Plan with_own_slots(Plan plan) {
  for (RankList& list : plan.lists) {
    std::vector<SlotId> now(static_cast<std::size_t>(list.slots), SlotId(-1));
    list.slots = 0;
    for (Instruction& instruction : list.instructions) {
      for (SlotUse& use : instruction.reads) {
        use.slot = now[use.slot.index()];
      }
      for (SlotUse& use : instruction.writes) {
        now[use.slot.index()] = SlotId(list.slots);
        use.slot = SlotId(list.slots++);
      }
    }
  }
  return plan;
}

}  // namespace stagecraft
