#include "stagecraft/compiler/lower/lifetimes.h"

#include <deque>
#include <map>
#include <utility>

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

}  // namespace

void assign_slots(RankPlan& rank) {
  std::map<ValueKey, std::size_t> last_use;
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    for (const SlotUse& use : rank.instructions[i].reads) {
      last_use[use.value] = i;
    }
    for (const SlotUse& use : rank.instructions[i].writes) {
      last_use.try_emplace(use.value, i);  // nobody reads it, so it is freed at once
    }
  }
  rank.slots = 0;
  SlotPool tensors(rank.slots), bundles(rank.slots);
  std::map<ValueKey, SlotId> slot_of;
  std::vector<Instruction> result;
  // Nothing is freed inside an overlap group: its blocks run in any order, so none may take over
  // another's slot.
  std::map<ValueKey, Stream> ended;
  int next_id = static_cast<int>(rank.instructions.size());
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    Instruction instruction = std::move(rank.instructions[i]);
    for (SlotUse& use : instruction.reads) {
      use.slot = slot_of.at(use.value);
    }
    for (SlotUse& use : instruction.writes) {
      use.slot = (is_bundle(use.value.role) ? bundles : tensors).take();
      slot_of[use.value] = use.slot;
    }
    const Stream stream =
        instruction.stream == Stream::Receive ? Stream::Compute : instruction.stream;
    for (const auto* uses : {&instruction.reads, &instruction.writes}) {
      for (const SlotUse& use : *uses) {
        if (last_use.at(use.value) == i) {
          ended[use.value] = stream;
        }
      }
    }
    const int overlap = instruction.overlap;
    result.push_back(std::move(instruction));
    const bool inside = overlap >= 0 && i + 1 < rank.instructions.size() &&
                        rank.instructions[i + 1].overlap == overlap;
    if (inside) {
      continue;
    }
    for (const auto& [value, stream_of_use] : ended) {
      const SlotId slot = slot_of.at(value);
      result.push_back({.id = InstructionId(next_id++),
                        .stream = stream_of_use,
                        .op = Op::Free,
                        .reads = {{slot, value}}});
      (is_bundle(value.role) ? bundles : tensors).give_back(slot);
      slot_of.erase(value);
    }
    ended.clear();
  }
  rank.instructions = std::move(result);
}

}  // namespace stagecraft
