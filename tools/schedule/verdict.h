/// What the rules say about a schedule file, and how people read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/memory_model.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/schedule/input.h"

namespace stagecraft::tools {

/// Returns all violations, those of the communication that the file lists included; a number that
/// was mistyped is one. `memory`: what a row may hold.
[[nodiscard]] std::vector<Violation> violations_of(const ScheduleFile& file,
                                                   std::optional<MemoryModel> memory = {});

/// Errors: ScheduleInvalid when the file breaks a rule, with the first violation and how many.
void require_valid(const ScheduleFile& file);

/// Returns "4 devices, 4 stages, 8 microbatches", replicas and listed communication where there are
/// any.
[[nodiscard]] std::string size_text(const ScheduleFile& file);

/// Returns the grid with what is wrong marked on it, the violations below it, then cycles cell by
/// cell and what repairs.
[[nodiscard]] std::string report_text(const ScheduleFile& file,
                                      const std::vector<Violation>& violations,
                                      const Console& console);

/// The first exchange that the violations propose.
[[nodiscard]] std::optional<Exchange> proposed_exchange(const std::vector<Violation>& violations);

}  // namespace stagecraft::tools
