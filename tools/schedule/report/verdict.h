/// verdict judges a schedule file by the rules, and reports the result to people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/strategy/sharing.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {

/// Returns all violations, also those of the communication that the file lists; a mistyped number
/// is one. `memory`: how much a row may hold; `sharing`: what copies of a stage share.
[[nodiscard]] std::vector<Violation> violations_of(const ScheduleFile& file,
                                                   std::optional<MemoryModel> memory = {},
                                                   Sharing sharing = Sharing::Nothing);

/// Checks the file.
/// Errors: ScheduleInvalid if it breaks a rule, with the first violation and the number of all.
void require_valid(const ScheduleFile& file);

/// Returns "4 devices, 4 stages, 8 microbatches", and replicas and listed communication if there
/// are any.
[[nodiscard]] std::string size_text(const ScheduleFile& file);

/// Returns the grid with the faults marked, the violations below it, then cycles cell by cell and
/// the repairs.
[[nodiscard]] std::string report_text(const ScheduleFile& file,
                                      const std::vector<Violation>& violations,
                                      const Console& console);

/// Returns the first exchange that the violations propose.
[[nodiscard]] std::optional<Exchange> proposed_exchange(const std::vector<Violation>& violations);

}  // namespace stagecraft::tools
