#include "stagecraft/tools/trace/trace.h"

#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/output.h"
#include "stagecraft/tools/trace/compare.h"

namespace stagecraft::tools {
namespace {

constexpr std::string_view kHelp =
    "Reads the trace files of stagecraft train --trace.\n"
    "Usage: stagecraft trace COMMAND [OPTIONS]\n\nCommands:\n"
    "  compare PLAN TRACE   hold a run against its schedule, in all and cell by cell\n"
    "\nui.perfetto.dev and chrome://tracing draw such a file.\n"
    "\nExit status: 0 compared, however far apart; 1 the schedule breaks a rule; 2 wrong usage, an "
    "unreadable file,\nor output that could not be written.\n"
    "stagecraft trace COMMAND --help lists the options of a command.\n";

}  // namespace

ExitCode trace(const std::vector<std::string>& arguments, Console& console) {
  if (arguments.empty()) {
    wrong_usage("stagecraft trace", "expected a command, found none");
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    write_output("", std::string(kHelp), console);
    return ExitCode::Good;
  }
  if (name != "compare") {
    throw Error(Errc::UsageArgument,
                fmt::format("expected a command of stagecraft trace, found '{}'; {}see stagecraft "
                            "trace --help",
                            name,
                            did_you_mean(name, {"compare"})));
  }
  return compare_trace({arguments.begin() + 1, arguments.end()}, console);
}

}  // namespace stagecraft::tools
