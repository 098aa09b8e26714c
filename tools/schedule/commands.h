/// The words after `stagecraft schedule`, one file each.
///
/// Each takes the words after its name, reads and writes through the console, and returns the exit
/// status: 0 good, 1 the schedule is wrong or differs. Errors: Error, printed by main as one
/// message; unreadable files and wrong usage end with 2.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

using Words = std::vector<std::string>;

/// `list [--json]`: the builders.
[[nodiscard]] ExitCode list_schedules(const Words& words, Console& console);
/// `make NAME`: a builder's schedule.
[[nodiscard]] ExitCode make_schedule(const Words& words, Console& console);
/// `check FILE`: every rule it breaks. A valid schedule from standard input goes on into a pipe.
[[nodiscard]] ExitCode check_schedule(const Words& words, Console& console);
/// `simulate FILE`: makespan, bubbles and what they wait for.
[[nodiscard]] ExitCode simulate_schedule(const Words& words, Console& console);
/// `show FILE`: the grid, in the terminal or as a picture.
[[nodiscard]] ExitCode show_schedule(const Words& words, Console& console);
/// `convert FILE --to FORMAT`.
[[nodiscard]] ExitCode convert_schedule(const Words& words, Console& console);
/// `fmt FILE`: in its own format, as it is usually written.
[[nodiscard]] ExitCode format_schedule(const Words& words, Console& console);
/// `lint FILE`: what is legal but odd.
[[nodiscard]] ExitCode lint_schedule(const Words& words, Console& console);
/// `diff A B`: where two schedules part, and what it does to time and memory.
[[nodiscard]] ExitCode diff_schedules(const Words& words, Console& console);
/// `fix FILE`: wrong numbers, orders and columns repaired step by step.
[[nodiscard]] ExitCode fix_schedule(const Words& words, Console& console);

/// `compare NAMES`: the figures of schedules that do the same work, side by side.
[[nodiscard]] ExitCode compare_schedules(const Words& words, Console& console);

/// `search`: the schedule of least makespan under a cap on what is in flight.
[[nodiscard]] ExitCode search_schedules(const Words& words, Console& console);
/// `sweep NAMES`: the figures of builders over devices, microbatches and chunks.
[[nodiscard]] ExitCode sweep_schedules(const Words& words, Console& console);

}  // namespace stagecraft::tools
