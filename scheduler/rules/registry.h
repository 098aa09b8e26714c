/// The registry lists the rules that validate() applies, in the order in which they run.
///
/// A new rule is one source file, whose name has the rule's number, one line in the table of
/// registry.cc, one test and one section of docs/rules.md. The smallest rule to copy is
/// v34_microbatch_sizes.cc. Builders check V34 too (require_legal()). Pure; any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

/// RuleInfo describes the rules that one function judges. A number can appear in several lines:
/// "V08" also covers actions that a file lists in addition to its tasks.
struct RuleInfo {
  std::vector<std::string_view> numbers;  ///< "V20", "V21"
  std::string_view summary;               ///< what a schedule must have
  /// Appends the violations. Judges nothing if the options do not ask for the rule, or if it does
  /// not apply to the schedule's form.
  void (*check)(const RuleInput& in, Violations& out) = nullptr;
};

/// Returns the rules. Later rules may read the results of earlier ones.
[[nodiscard]] std::span<const RuleInfo> rule_table();

}  // namespace stagecraft::rules
