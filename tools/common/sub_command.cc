#include "stagecraft/tools/common/sub_command.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/help/describe.h"
#include "stagecraft/tools/help/wrapped_text.h"

namespace stagecraft::tools {
namespace {

std::string label(const SubCommand& command) {
  return command.arguments.empty() ? std::string(command.name)
                                   : fmt::format("{} {}", command.name, command.arguments);
}

std::string help(const CommandGroup& group) {
  constexpr std::size_t kAround = 4;  // indentation, and the gap between the columns
  std::size_t column = 0;
  for (const SubCommand& command : group.commands) {
    column = std::max(column, label(command).size() + kAround);
  }
  std::string text = wrapped_text(group.about, help_width()) +
                     fmt::format("Usage: {} COMMAND [OPTIONS]\n\nCommands:\n", group.command);
  for (const SubCommand& command : group.commands) {
    text += wrapped_entry(label(command), command.about, column, help_width());
  }
  return text + wrapped_text(group.notes, help_width());
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

std::vector<std::string> help_by_option(std::vector<std::string> words) {
  while (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  return words;
}

ExitCode run_sub_command(const CommandGroup& group,
                         const std::vector<std::string>& given,
                         Console& console) {
  const std::vector<std::string> words = help_by_option(given);
  if (words.empty()) {
    console.err << "stagecraft: expected a command, found none\n\n" << help(group);
    return ExitCode::WrongUsage;
  }
  const std::string& name = words.front();
  if (name == "--help" || name == "-h") {
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
