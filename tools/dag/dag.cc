#include "stagecraft/tools/dag/dag.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "stagecraft/tools/dag/convert.h"
#include "stagecraft/tools/dag/show.h"
#include "stagecraft/tools/help/describe.h"

namespace stagecraft::tools {

ExitCode dag_with(decltype(SubCommand::run) show,
                  const std::vector<std::string>& arguments,
                  Console& console) {
  const CommandGroup group{
      .command = "stagecraft dag",
      .about =
          "Shows the training DAG of a strategy or a schedule: its computing nodes, its "
          "communication, and the order in which every rank issues them.",
      .commands = {{"show",
                    "FILE",
                    "show nodes, streams and lists: as text, JSON, picture or page",
                    std::move(show)},
                   {"convert",
                    "FILE",
                    "write a strategy, or that of a schedule, as text or for Piper",
                    &convert_strategy}},
      .notes =
          "\nExit status: 0 shown; 1 the strategy or the schedule cannot be applied; 2 wrong "
          "usage, a file that cannot be read, or output that cannot be written.\n"
          "stagecraft dag COMMAND --help lists the options of a command.\n"};
  return run_sub_command(group, arguments, console);
}

ExitCode dag(const std::vector<std::string>& arguments, Console& console) {
  return dag_with(&show_dag, arguments, console);
}

bool names_model(const std::vector<std::string>& arguments) {
  return std::ranges::any_of(arguments, [](std::string_view word) {
    word = word.substr(0, word.find('='));
    return word == "--model" || word == "--model-file";
  });
}

bool asks_for_options(const std::vector<std::string>& arguments) {
  return arguments.size() > 1 && arguments.front() == "show" &&
         std::any_of(arguments.begin() + 1, arguments.end(), [](const std::string& word) {
           return word == "--help" || word == "-h" || word == kDescribe;
         });
}

}  // namespace stagecraft::tools
