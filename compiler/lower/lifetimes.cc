#include "stagecraft/compiler/lower/lifetimes.h"

#include <map>
#include <set>
#include <utility>

namespace stagecraft {
namespace {

/// Slots that hold a stage's saved state or gradients are not interchangeable with those that hold one tensor.
bool is_bundle(Role role) { return role == Role::Saved || role == Role::ParameterGradient; }

class SlotPool {
 public:
  explicit SlotPool(std::int32_t& count) : count_(count) {}

  SlotId take() {
    if (free_.empty()) {
      return SlotId(count_++);
    }
    const SlotId slot = *free_.begin();
    free_.erase(free_.begin());
    return slot;
  }
  void give_back(SlotId slot) { free_.insert(slot); }

 private:
  std::int32_t& count_;
  std::set<SlotId> free_;
};

}  // namespace

void assign_slots(RankPlan& rank) {
  std::map<ValueKey, std::size_t> last_use;
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    for (const SlotUse& use : rank.instructions[i].reads) {
      last_use[use.value] = i;
    }
    for (const SlotUse& use : rank.instructions[i].writes) {
      last_use.try_emplace(use.value, i);  // nobody reads it: it goes at once
    }
  }
  rank.slots = 0;
  SlotPool tensors(rank.slots), bundles(rank.slots);
  std::map<ValueKey, SlotId> slot_of;
  std::vector<Instruction> result;
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
    std::set<ValueKey> ended;
    for (const auto* uses : {&instruction.reads, &instruction.writes}) {
      for (const SlotUse& use : *uses) {
        if (last_use.at(use.value) == i) {
          ended.insert(use.value);
        }
      }
    }
    const InstructionId user = instruction.id;
    const Stream stream = instruction.stream == Stream::Receive ? Stream::Compute : instruction.stream;
    result.push_back(std::move(instruction));
    for (const ValueKey& value : ended) {
      const SlotId slot = slot_of.at(value);
      result.push_back({.id = InstructionId(next_id++), .stream = stream, .op = Op::Free, .waits = {user}, .reads = {{slot, value}}});
      (is_bundle(value.role) ? bundles : tensors).give_back(slot);
      slot_of.erase(value);
    }
  }
  rank.instructions = std::move(result);
}

}  // namespace stagecraft
