#include "stagecraft/compiler/lower/lifetimes.h"

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

/// Returns whether the slot holds a stage's saved state or gradients. Such a slot cannot be reused
/// for a single tensor.
bool is_bundle(Role role) {
  return role == Role::Saved || role == Role::ParameterGradient;
}

/// SlotPool hands out the slot that has been free for longest, since its next writer has the least
/// to wait for.
class SlotPool {
 public:
  explicit SlotPool(std::int32_t& count) : count_(count) {}

  SlotId take() {
    if (free_.empty()) {
      return SlotId(count_++);
    }
    const SlotId slot = free_.front();
    free_.pop_front();
    return slot;
  }
  void give_back(SlotId slot) { free_.push_back(slot); }

 private:
  std::int32_t& count_;
  std::deque<SlotId> free_;
};

/// A value that nobody uses any more, and the stream of its last use.
struct Ended {
  SlotUse use;
  StreamId stream;
};

}  // namespace

void assign_slots(RankList& list) {
  std::vector<std::size_t> last_use(static_cast<std::size_t>(list.slots));  // by value
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    for (const auto* uses : {&list.instructions[i].reads, &list.instructions[i].writes}) {
      for (const SlotUse& use : *uses) {
        last_use[use.slot.index()] = i;  // a value that nobody reads is freed at once
      }
    }
  }
  std::vector<SlotId> slot_of(last_use.size(), SlotId(-1));
  list.slots = 0;
  SlotPool tensors(list.slots), bundles(list.slots);
  std::vector<Instruction> result;
  result.reserve(list.instructions.size() + last_use.size());
  // Nothing is freed inside an overlap group: its blocks run in any order, so none may take over
  // another's slot.
  std::vector<Ended> ended;
  int next_id = static_cast<int>(list.instructions.size());
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    Instruction& instruction = result.emplace_back(std::move(list.instructions[i]));
    const StreamId stream = instruction.op == Op::Recv ? kCompute : instruction.stream;
    const auto place = [&](SlotUse& use) {
      const std::size_t value = use.slot.index();
      use.slot = slot_of[value];
      if (last_use[value] == i) {
        ended.push_back({use, stream});
      }
    };
    for (SlotUse& use : instruction.reads) {
      place(use);
    }
    for (SlotUse& use : instruction.writes) {
      slot_of[use.slot.index()] = (is_bundle(use.value.role) ? bundles : tensors).take();
      place(use);
    }
    const int overlap = instruction.overlap;
    const bool inside = overlap >= 0 && i + 1 < list.instructions.size() &&
                        list.instructions[i + 1].overlap == overlap;
    if (inside) {
      continue;
    }
    for (const Ended& value : ended) {
      Instruction& free = result.emplace_back();
      free.id = InstructionId(next_id++);
      free.stream = value.stream;
      free.op = Op::Free;
      free.reads = {value.use};
      (is_bundle(value.use.value.role) ? bundles : tensors).give_back(value.use.slot);
    }
    ended.clear();
  }
  list.instructions = std::move(result);
}

}  // namespace stagecraft
