#include "stagecraft/tools/common/sub_command.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/help/describe.h"

namespace stagecraft::tools {
namespace {

std::string help(const CommandGroup& group) {
  std::string text =
      fmt::format("{}\nUsage: {} COMMAND [OPTIONS]\n\nCommands:\n", group.about, group.command);
  for (const SubCommand& command : group.commands) {
    text += fmt::format("  {:<{}}{}\n",
                        fmt::format("{} {}", command.name, command.arguments),
                        group.column,
                        command.about);
  }
  return text + std::string(group.notes);
}

/// Returns name, usage, about, notes, and commands: each with name, arguments and about.
std::string describe(const CommandGroup& group) {
  nlohmann::ordered_json commands = nlohmann::ordered_json::array();
  for (const SubCommand& command : group.commands) {
    commands.push_back(
        {{"name", command.name}, {"arguments", command.arguments}, {"about", command.about}});
  }
  const nlohmann::ordered_json object{{"name", group.command},
                                      {"usage", std::string(group.command) + " COMMAND [OPTIONS]"},
                                      {"about", group.about},
                                      {"notes", group.notes},
                                      {"commands", commands}};
  return object.dump() + '\n';
}

const SubCommand& find_command(const CommandGroup& group, const std::string& name) {
  const auto found = std::ranges::find(group.commands, name, &SubCommand::name);
  if (found != group.commands.end()) {
    return *found;
  }
  std::vector<std::string> names;
  for (const SubCommand& command : group.commands) {
    names.emplace_back(command.name);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("expected a command of {}, found '{}'; {}see {} --help",
                          group.command,
                          name,
                          did_you_mean(name, names),
                          group.command));
}

}  // namespace

ExitCode run_sub_command(const CommandGroup& group,
                         const std::vector<std::string>& words,
                         Console& console) {
  if (words.empty()) {
    console.err << "stagecraft: expected a command, found none\n\n" << help(group);
    return ExitCode::WrongUsage;
  }
  const std::string& name = words.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print(help(group), console);
    return ExitCode::Good;
  }
  if (name == kDescribe) {
    print(describe(group), console);
    return ExitCode::Good;
  }
  return find_command(group, name).run({words.begin() + 1, words.end()}, console);
}

}  // namespace stagecraft::tools
