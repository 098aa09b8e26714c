#include "stagecraft/tools/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/output.h"
#include "stagecraft/tools/schedule/commands.h"

namespace stagecraft::tools {
namespace {

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view about;
  ExitCode (*run)(const Words& words, Console& console);
};

constexpr std::array<Command, 8> kCommands{{
    {"list", "", "the schedules that can be made, and their parameters", &list_schedules},
    {"make", "NAME", "make one of them", &make_schedule},
    {"check", "FILE", "prove that a schedule can run, or show every fault", &check_schedule},
    {"simulate", "FILE", "how long it takes, and why who waits for what", &simulate_schedule},
    {"show", "FILE", "draw it: in the terminal, as SVG, as HTML", &show_schedule},
    {"convert", "FILE", "write it in another format", &convert_schedule},
    {"diff", "A B", "where two schedules part, and what that costs", &diff_schedules},
    {"fix", "FILE", "make the exchange of two cells that check proposes", &fix_schedule},
}};

std::string help() {
  std::string text =
      "Makes, checks, simulates, shows, converts, compares and repairs schedules.\n"
      "Usage: stagecraft schedule COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    text += fmt::format(
        "  {:<15} {}\n", fmt::format("{} {}", command.name, command.arguments), command.about);
  }
  return text +
         "\nFILE is text, JSON or PyTorch's CSV; - is standard input. So they can be piped:\n"
         "  stagecraft schedule make 1f1b --devices 4 --microbatches 8 |\n"
         "    stagecraft schedule check - | stagecraft schedule simulate -\n"
         "\nExit status: 0 good, 1 the schedule is wrong or differs, 2 unreadable, unwritable or "
         "wrong\nusage.\n"
         "stagecraft schedule COMMAND --help lists the options of a command.\n";
}

const Command& find_command(const std::string& name) {
  const auto* const found = std::ranges::find(kCommands, name, &Command::name);
  if (found != kCommands.end()) {
    return *found;
  }
  std::vector<std::string> names;
  names.reserve(kCommands.size());
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("expected a command of stagecraft schedule, found '{}'; {}see stagecraft "
                          "schedule --help",
                          name,
                          did_you_mean(name, names)));
}

}  // namespace

ExitCode schedule(const std::vector<std::string>& arguments, Console& console) {
  if (arguments.empty()) {
    wrong_usage("stagecraft schedule", "expected a command, found none");
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    write_output("", help(), console);
    return ExitCode::Good;
  }
  return find_command(name).run({arguments.begin() + 1, arguments.end()}, console);
}

}  // namespace stagecraft::tools
