#include "stagecraft/compiler/lower/waits.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "stagecraft/compiler/plan/issue_order.h"

namespace stagecraft {
namespace {

using Positions = std::vector<std::uint32_t>;

/// SlotUsers lists the users of a slot since it was last empty, as positions in the list.
struct SlotUsers {
  Positions users;  ///< the writer first
  Positions freed;  ///< the last Free of the slot, if any
};

class Waits {
 public:
  Waits(RankList& list, const PlanTables& tables)
      : list_(list),
        tables_(tables),
        order_(list.streams.size(), list.instructions.size()),
        slots_(static_cast<std::size_t>(list.slots)) {}

  void run() {
    for (std::uint32_t i = 0; i < list_.instructions.size(); ++i) {
      Instruction& instruction = list_.instructions[i];
      earlier_.clear();
      follow_slots(instruction);
      follow_gradients(instruction);
      follow_rounds(instruction);
      // The latest first, since a wait for it often covers the others.
      std::ranges::sort(earlier_, std::ranges::greater());
      earlier_.erase(std::unique(earlier_.begin(), earlier_.end()),
                     earlier_.end());  // clang 14 cannot compile ranges::unique
      for (const std::uint32_t before : earlier_) {
        const InstructionId id = list_.instructions[before].id;
        if (!order_.is_over(id, instruction)) {
          instruction.waits.push_back(id);
        }
      }
      order_.add(instruction);
      note_uses(instruction, i);
    }
  }

 private:
  void follow(const Positions& positions) {
    earlier_.insert(earlier_.end(), positions.begin(), positions.end());
  }

  void follow_slots(const Instruction& instruction) {
    for (const SlotUse& use : instruction.reads) {
      const Positions& users = slots_[use.slot.index()].users;
      if (instruction.op == Op::Free) {
        follow(users);
      } else {
        earlier_.push_back(users.front());
      }
      if (use.value.role == Role::Saved) {
        follow_exchanges(instruction, users);
      }
    }
    for (const SlotUse& use : instruction.writes) {
      follow(slots_[use.slot.index()].freed);
    }
  }

  /// Keeps the order of a microbatch's exchanges and the tasks around them (P-13).
  void follow_exchanges(const Instruction& instruction, const Positions& users) {
    std::ranges::copy_if(users, std::back_inserter(earlier_), [&](std::uint32_t user) {
      return is_exchange(instruction) || is_exchange(list_.instructions[user]);
    });
  }

  void follow_gradients(const Instruction& instruction) {
    if (is_exchange(instruction)) {
      return;
    }
    if (instruction.op == Op::Start && gathers_weights(tables_, instruction)) {
      follow(updated_);
      if (const auto given = released_.find(instruction.group); given != released_.end()) {
        earlier_.push_back(given->second);
      }
    } else if (instruction.op == Op::Start) {
      const PlanGroup& group = tables_.groups[static_cast<std::size_t>(instruction.group)];
      for (const std::uint32_t tasks : accumulated_) {
        if (sums(tables_, group, list_.instructions[tasks])) {
          earlier_.push_back(tasks);
        }
      }
      for (const auto& [of, finish] : finished_) {
        if (group.kind == PlanGroup::Kind::Tie &&
            shares_a_stage(group, list_.instructions[finish])) {
          earlier_.push_back(finish);
        }
      }
    } else if (instruction.op == Op::Vote) {
      for (const auto& [of, finish] : finished_) {
        earlier_.push_back(finish);
      }
    }
  }

  /// Lets a task that makes gradients wait for the round that still reads those before (P-11), and
  /// one that uses weights for the round that brings them (P-12).
  void follow_rounds(const Instruction& instruction) {
    if (instruction.op != Op::Run) {
      return;
    }
    for (const auto& [of, finish] : finished_) {
      const auto& [number, gathers] = of;
      const PlanGroup& group = tables_.groups[static_cast<std::size_t>(number)];
      if (gathers ? uses_weights_of(tables_, group, instruction)
                  : makes_gradients_of(tables_, group, instruction)) {
        earlier_.push_back(finish);
      }
    }
  }

  /// Returns whether the Finish is of the copies of a stage of the tie.
  [[nodiscard]] bool shares_a_stage(const PlanGroup& tie, const Instruction& finish) const {
    const PlanGroup& other = tables_.groups[static_cast<std::size_t>(finish.group)];
    return other.kind == PlanGroup::Kind::Copies &&
           std::ranges::any_of(other.stages, [&](StageId stage) {
             return std::ranges::find(tie.stages, stage) != tie.stages.end();
           });
  }

  void note_uses(const Instruction& instruction, std::uint32_t position) {
    for (const SlotUse& use : instruction.reads) {
      SlotUsers& slot = slots_[use.slot.index()];
      if (instruction.op == Op::Free) {
        slot.users.clear();
        slot.freed.assign(1, position);
      } else {
        slot.users.push_back(position);
      }
    }
    for (const SlotUse& use : instruction.writes) {
      SlotUsers& slot = slots_[use.slot.index()];
      slot.users.assign(1, position);
      slot.freed.clear();
    }
    if (instruction.op == Op::Accumulate) {
      accumulated_.push_back(position);
    } else if (instruction.op == Op::Finish && !is_exchange(instruction)) {
      finished_[{instruction.group, gathers_weights(tables_, instruction)}] = position;
    } else if (instruction.op == Op::Update) {
      updated_.push_back(position);
    } else if (instruction.op == Op::Release) {
      released_[instruction.group] = position;
    }
  }

  RankList& list_;
  const PlanTables& tables_;
  IssueOrder order_;
  std::vector<SlotUsers> slots_;
  Positions earlier_;
  Positions accumulated_, updated_;
  /// The last Finish of each group, and of its gathers; earlier ones of its stream are over then.
  std::map<std::pair<std::int32_t, bool>, std::uint32_t> finished_;
  std::map<std::int32_t, std::uint32_t> released_;  // by group: the last Release
};

}  // namespace

void set_waits(RankList& list, const PlanTables& tables) {
  Waits(list, tables).run();
}

}  // namespace stagecraft
