#include "stagecraft/tools/trace/trace.h"

#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/trace/compare.h"
#include "stagecraft/tools/trace/show.h"

namespace stagecraft::tools {

ExitCode trace(const std::vector<std::string>& arguments, Console& console) {
  const CommandGroup group{
      .command = "stagecraft trace",
      .about = "Reads the trace files of `stagecraft train --trace`.",
      .commands = {{"compare",
                    "PLAN TRACE",
                    "compare a run with its schedule, as a whole and cell by cell",
                    &compare_trace},
                   {"show", "TRACE", "draw a run below its plan, as a picture", &show_trace}},
      .notes =
          "\nui.perfetto.dev and chrome://tracing display these files.\n"
          "\nExit status: 0 compared or drawn, with any differences; 1 the schedule breaks a rule; "
          "2 wrong usage, a file that cannot be read, or output that cannot be written.\n"
          "stagecraft trace COMMAND --help lists the options of a command.\n"};
  return run_sub_command(group, arguments, console);
}

}  // namespace stagecraft::tools
