/// commands.h lists the sub-commands of `stagecraft schedule`, one file each.
///
/// Each takes the arguments after its name, reads and writes through the console, and returns the
/// exit status: 0 for success, 1 if the schedule is wrong or differs. Errors: Error, which main
/// prints as one message; unreadable files and wrong usage end with 2.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

using Words = std::vector<std::string>;

/// `list [--json]`: lists the builders and the file formats.
[[nodiscard]] ExitCode list_schedules(const Words& words, Console& console);
/// `make NAME`: writes a builder's schedule.
[[nodiscard]] ExitCode make_schedule(const Words& words, Console& console);
/// `check FILE`: reports every rule that the schedule breaks. Passes on a valid schedule from
/// standard input to a pipe.
[[nodiscard]] ExitCode check_schedule(const Words& words, Console& console);
/// `simulate FILE`: prints makespan, bubbles and their causes.
[[nodiscard]] ExitCode simulate_schedule(const Words& words, Console& console);
/// `show FILES`: draws grids, in the terminal or as a picture.
[[nodiscard]] ExitCode show_schedule(const Words& words, Console& console);
/// `convert FILE --to FORMAT`: writes another format.
[[nodiscard]] ExitCode convert_schedule(const Words& words, Console& console);
/// `fmt FILE`: rewrites the schedule in the usual layout of its own format.
[[nodiscard]] ExitCode format_schedule(const Words& words, Console& console);
/// `lint FILE`: reports parts that are legal but unusual.
[[nodiscard]] ExitCode lint_schedule(const Words& words, Console& console);
/// `diff A B`: shows where two schedules differ, and the effect on time and memory.
[[nodiscard]] ExitCode diff_schedules(const Words& words, Console& console);
/// `fix FILE`: repairs wrong numbers, orders and columns step by step.
[[nodiscard]] ExitCode fix_schedule(const Words& words, Console& console);

/// `compare NAMES`: prints the figures of schedules for the same work, side by side.
[[nodiscard]] ExitCode compare_schedules(const Words& words, Console& console);

/// `search`: finds the schedule of least makespan under a cap on microbatches in flight.
[[nodiscard]] ExitCode search_schedules(const Words& words, Console& console);
/// `sweep NAMES`: prints the figures of builders over devices, microbatches and chunks.
[[nodiscard]] ExitCode sweep_schedules(const Words& words, Console& console);

}  // namespace stagecraft::tools
