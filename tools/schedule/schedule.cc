#include "stagecraft/tools/schedule/schedule.h"

#include <fmt/format.h>

#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/format.h"

namespace stagecraft::tools {

ExitCode schedule(const std::vector<std::string>& arguments, Console& console) {
  const std::string notes = fmt::format(
      "\nFILE has one of the formats {}; - is standard input. Commands can be piped:\n"
      "  stagecraft schedule make 1f1b --devices 4 --microbatches 8 |\n"
      "    stagecraft schedule check - | stagecraft schedule simulate -\n"
      "\nExit status: 0 success; 1 the schedule is wrong or differs; 2 wrong usage, a file that "
      "cannot be read, or output that cannot be written.\n"
      "stagecraft schedule COMMAND --help lists the options of a command.\n",
      format_names());
  const CommandGroup group{
      .command = "stagecraft schedule",
      .about = "Makes, checks, simulates, draws, converts, compares and repairs schedules.",
      .commands =
          {{"list",
            "",
            "list the builders, their parameters, and the file formats",
            &list_schedules},
           {"make", "NAME", "write the schedule of a builder", &make_schedule},
           {"check", "FILE", "prove that a schedule can run, or show every fault", &check_schedule},
           {"simulate",
            "FILE",
            "compute how long a step takes, and what each device waits for",
            &simulate_schedule},
           {"show",
            "FILES",
            "draw schedules in the terminal, as a picture or as a page",
            &show_schedule},
           {"convert", "FILE", "write a schedule in another format", &convert_schedule},
           {"diff",
            "A B",
            "show where two schedules differ, and the effect on time and memory",
            &diff_schedules},
           {"fmt",
            "FILE",
            "rewrite a schedule in the usual layout of its own format",
            &format_schedule},
           {"lint", "FILE", "report parts that are legal but unusual", &lint_schedule},
           {"compare",
            "NAMES",
            "compare the figures of builders and files that do the same work",
            &compare_schedules},
           {"search",
            "",
            "find the best schedule for devices, microbatches and a cap on memory",
            &search_schedules},
           {"sweep",
            "NAMES",
            "tabulate the figures of builders over devices, microbatches and chunks",
            &sweep_schedules},
           {"fix",
            "FILE",
            "repair mistyped numbers, orders and columns, step by step",
            &fix_schedule}},
      .notes = notes};
  return run_sub_command(group, arguments, console);
}

}  // namespace stagecraft::tools
