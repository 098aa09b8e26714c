/// The `stagecraft` command: finds the sub-command, and is the one place where a failure becomes a
/// message on standard error and an exit status. No stack traces: whatever went wrong has to say so
/// in words.

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/exit_code.h"
#include "stagecraft/tools/schedule/schedule.h"
#include "stagecraft/tools/sub_command.h"
#include "stagecraft/tools/trace/trace.h"
#include "stagecraft/tools/train/train.h"

namespace stagecraft::tools {
namespace {

const std::vector<SubCommand>& sub_commands() {
  static const std::vector<SubCommand> commands{
      {"trace", "hold what a run recorded against its schedule", &trace},
      {"train", "train a small Llama on the bytes of a text, by pipeline", &train},
      {"schedule", "make, check, simulate, show, convert, compare and repair schedules", &schedule},
  };
  return commands;
}

std::string help() {
  std::string text =
      "Trains ordinary LibTorch modules by pipeline, from a schedule that is checked before it "
      "runs.\n"
      "Usage: stagecraft COMMAND [OPTIONS]\n\nCommands:\n";
  for (const SubCommand& command : sub_commands()) {
    text += fmt::format("  {:<10} {}\n", command.name, command.about);
  }
  return text + "\nstagecraft COMMAND --help lists the options of a command.\n";
}

ExitCode dispatch(const std::vector<std::string>& words) {
  if (words.empty()) {
    throw Error(Errc::UsageArgument, "expected a command, found none; see stagecraft --help");
  }
  if (words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
    std::cout << help();
    return ExitCode::Good;
  }
  const auto& commands = sub_commands();
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const SubCommand& c) {
    return c.name == words.front();
  });
  if (found == commands.end()) {
    std::vector<std::string> names;
    std::transform(commands.begin(), commands.end(), std::back_inserter(names), [](const auto& c) {
      return c.name;
    });
    throw Error(Errc::UsageArgument,
                fmt::format("expected a command of stagecraft, found '{}'; {}see stagecraft --help",
                            words.front(),
                            did_you_mean(words.front(), names)));
  }
  return found->run({words.begin() + 1, words.end()});
}

ExitCode run(const std::vector<std::string>& words) {
  try {
    return dispatch(words);
  } catch (const Error& error) {
    std::cerr << "stagecraft: " << error.what() << '\n';
    return exit_code(error);
  } catch (const std::exception& error) {
    std::cerr
        << "stagecraft: an error that nobody expected: " << error.what()
        << "\nThis is a bug of stagecraft; please report it with the command that led to it.\n";
    return ExitCode::Failed;
  }
}

}  // namespace
}  // namespace stagecraft::tools

int main(int argc, char** argv) {
  return static_cast<int>(stagecraft::tools::run(std::vector<std::string>(argv + 1, argv + argc)));
}
