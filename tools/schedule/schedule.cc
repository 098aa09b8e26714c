#include "stagecraft/tools/schedule/schedule.h"

#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/schedule/commands.h"

namespace stagecraft::tools {

ExitCode schedule(const std::vector<std::string>& arguments, Console& console) {
  const CommandGroup group{
      .command = "stagecraft schedule",
      .about = "Makes, checks, simulates, shows, converts, compares and repairs schedules.",
      .column = 16,
      .commands =
          {{"list", "", "the schedules that can be made, and their parameters", &list_schedules},
           {"make", "NAME", "make one of them", &make_schedule},
           {"check", "FILE", "prove that a schedule can run, or show every fault", &check_schedule},
           {"simulate",
            "FILE",
            "how long it takes, and why who waits for what",
            &simulate_schedule},
           {"show", "FILE", "draw it: in the terminal, as SVG, as HTML", &show_schedule},
           {"convert", "FILE", "write it in another format", &convert_schedule},
           {"diff", "A B", "where two schedules part, and what that costs", &diff_schedules},
           {"fmt",
            "FILE",
            "write it in its own format, as it is usually written",
            &format_schedule},
           {"lint", "FILE", "what is legal but odd", &lint_schedule},
           {"compare",
            "NAMES",
            "figures of builders and files that do the same work, side by side",
            &compare_schedules},
           {"search",
            "",
            "the best schedule for a number of devices and microbatches, and a cap",
            &search_schedules},
           {"sweep",
            "NAMES",
            "figures of builders over devices, microbatches and chunks",
            &sweep_schedules},
           {"fix",
            "FILE",
            "repair mistyped numbers, orders and columns, step by step",
            &fix_schedule}},
      .notes =
          "\nFILE is text, JSON, PyTorch's CSV, or a list of JaxPP, Piper or the zero-bubble "
          "scheduler;\n- is standard input. So they can be piped:\n"
          "  stagecraft schedule make 1f1b --devices 4 --microbatches 8 |\n"
          "    stagecraft schedule check - | stagecraft schedule simulate -\n"
          "\nExit status: 0 good, 1 the schedule is wrong or differs, 2 unreadable, unwritable or "
          "wrong\nusage.\n"
          "stagecraft schedule COMMAND --help lists the options of a command.\n"};
  return run_sub_command(group, arguments, console);
}

}  // namespace stagecraft::tools
