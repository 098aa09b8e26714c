/// ExchangeCheck checks what one list shows of P-13: exchanges of samples around the tasks of
/// divided chunks. verify(RankList) makes one and adds the instructions in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/compiler/plan/issue_order.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

class ExchangeCheck {
 public:
  /// Takes the instruction, and what is wrong with it.
  using Fault = std::function<void(const Instruction& in, std::string_view what)>;

  /// Views all arguments. `order`: has the instructions that were added here.
  ExchangeCheck(const PlanTables& tables, const IssueOrder& order, Fault fault);

  /// Checks the next instruction of a list that trains. Requires: it is sound by itself (P-9), and
  /// lives as long as this.
  void add(const Instruction& i);
  /// Checks what is missing at the end of the list.
  void end();

 private:
  /// The steps of a task of a divided chunk, in their order.
  enum class Step : std::uint8_t { Bringing, Brought, Ran, Returning, Returned };
  struct Turn {
    Step step = Step::Bringing;
    const Instruction* last = nullptr;
  };
  using Part = std::pair<Task, std::int32_t>;  // of a chunk

  void check_run(const Instruction& i);
  void check_exchange(const Instruction& i);
  /// Returns whether a Run of a divided chunk needs samples of other ranks.
  [[nodiscard]] bool exchanges_for(const Instruction& run) const;
  /// Returns whether the chunk of an exchange comes right behind what has run.
  [[nodiscard]] static bool is_next(const Instruction& exchange, const Instruction& run);
  void require_over(const Instruction* earlier, const Instruction& i) const;

  const PlanTables& tables_;
  const IssueOrder& order_;
  const Fault fault_;
  std::map<StageId, std::set<std::int32_t>> divided_;  // chunks
  std::map<Part, Turn> turns_;
  std::map<Task, const Instruction*> last_run_;
  std::map<std::int32_t, std::int32_t> rounds_;  // that have started, by group
};

}  // namespace stagecraft
