#include "stagecraft/tools/dag/dag.h"

#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/dag/show.h"

namespace stagecraft::tools {

ExitCode dag(const std::vector<std::string>& arguments, Console& console) {
  const CommandGroup group{
      .command = "stagecraft dag",
      .about =
          "Shows the training DAG of a strategy or a schedule: its computing nodes, its "
          "communication,\nand the order in which every rank issues them.",
      .column = 16,
      .commands =
          {{"show", "FILE", "print nodes, streams and lists, for people or as JSON", &show_dag}},
      .notes =
          "\nExit status: 0 shown; 1 the strategy or the schedule cannot be applied; 2 wrong "
          "usage, "
          "a file\nthat cannot be read, or output that cannot be written.\n"
          "stagecraft dag COMMAND --help lists the options of a command.\n"};
  return run_sub_command(group, arguments, console);
}

}  // namespace stagecraft::tools
