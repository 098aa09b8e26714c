#include "stagecraft/tools/credentials/credentials.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/credentials/commands.h"
#include "stagecraft/tools/output.h"

namespace stagecraft::tools {
namespace {

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view about;
  ExitCode (*run)(const std::vector<std::string>& words, Console& console);
};

constexpr std::array<Command, 3> kCommands{{
    {"make",
     "DIR",
     "an authority, and a certificate and key per member",
     &make_cluster_credentials},
    {"renew",
     "DIR MEMBER",
     "another certificate for a member, or one more member",
     &renew_credentials},
    {"show", "DIR", "members, until when they are valid, and what is wrong", &show_credentials},
}};

std::string help() {
  std::string text =
      "Makes, renews and shows what the processes of a cluster know each other by.\n"
      "Usage: stagecraft credentials COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : kCommands) {
    text += fmt::format(
        "  {:<16} {}\n", fmt::format("{} {}", command.name, command.arguments), command.about);
  }
  return text +
         "\nDIR is the folder of a cluster; in it, driver, worker-0, worker-1 ... are complete by "
         "themselves:\ncopy one to its host and name it there, and leave ca-key.pem where it is. "
         "Any member may act in\nthe whole cluster (docs/security.md).\n"
         "\nExit status: 0 good, 1 what show was asked about is expired, foreign, damaged or too "
         "open, 2 wrong\nusage, or a folder that cannot be read, is taken or cannot be written.\n"
         "stagecraft credentials COMMAND --help lists the options of a command.\n";
}

const Command& find_command(const std::string& name) {
  const auto* const found = std::ranges::find(kCommands, name, &Command::name);
  if (found != kCommands.end()) {
    return *found;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("expected a command of stagecraft credentials, found '{}'; {}see "
                          "stagecraft credentials --help",
                          name,
                          did_you_mean(name, names)));
}

}  // namespace

ExitCode credentials(const std::vector<std::string>& arguments, Console& console) {
  if (arguments.empty()) {
    wrong_usage("stagecraft credentials", "expected a command, found none");
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    write_output("", help(), console);
    return ExitCode::Good;
  }
  return find_command(name).run({arguments.begin() + 1, arguments.end()}, console);
}

}  // namespace stagecraft::tools
