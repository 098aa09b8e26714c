/// SumCheck checks what one list shows of P-7, P-11 and P-12: sums of gradients, the vote, updates,
/// and gathers of weights. verify(RankList) makes one and adds the instructions in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/compiler/plan/issue_order.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

class SumCheck {
 public:
  /// Takes the rule and what is wrong. Null in place of the instruction: the list as a whole.
  using Fault =
      std::function<void(std::string_view rule, const Instruction* in, std::string_view what)>;

  /// Views all arguments. `order`: has the instructions that were added here.
  SumCheck(const RankList& list, const PlanTables& tables, const IssueOrder& order, Fault fault);

  /// Checks the next instruction. Requires: it is sound by itself (P-9), and lives as long as this.
  void add(const Instruction& i);
  /// Checks what is missing at the end of the list.
  void end();

 private:
  /// Sums holds the state of a group at this place in the list.
  struct Sums {
    const Instruction* start = nullptr;   // the last of its sums
    std::optional<InstructionId> finish;  // of this start
    std::int32_t rounds = 0;              // that have started
    bool has_more = false;                // gradients that no round has summed
    const Instruction* gather = nullptr;  // the start of the last gather of its weights
    std::optional<InstructionId> gathered;
    std::int32_t gathers = 0;            // that have started
    std::vector<InstructionId> users;    // of the weights that it has gathered
    std::optional<InstructionId> given;  // the last Release
  };

  void fault(std::string_view rule, const Instruction& i, std::string_view what) const {
    fault_(rule, &i, what);
  }
  [[nodiscard]] const PlanGroup& group_of(const Instruction& i) const {
    return tables_.groups[static_cast<std::size_t>(i.group)];
  }
  void require_over(std::string_view rule, InstructionId earlier, const Instruction& i) const;
  void check_run(const Instruction& i);
  void check_accumulate(const Instruction& i);
  void check_start(const Instruction& i);
  void check_round(const PlanGroup& group, const Sums& sums, const Instruction& i) const;
  void check_gather(const Instruction& i);
  void check_gather_for_tasks(const Sums& of, const Instruction& i) const;
  void check_release(const Instruction& i);
  void check_finish(const Instruction& i,
                    const Instruction* start,
                    std::optional<InstructionId>& end) const;
  void check_vote(const Instruction& i);
  void check_update(const Instruction& i);

  const RankList& list_;
  const PlanTables& tables_;
  const IssueOrder& order_;
  const Fault fault_;
  std::vector<const Instruction*> accumulated_;
  std::vector<Sums> sums_;              // by group
  std::vector<std::size_t> in_rounds_;  // the groups with rounds of stages in the list
  std::optional<InstructionId> vote_;
  std::map<std::pair<StageId, std::int32_t>, InstructionId> updated_;
};

}  // namespace stagecraft
