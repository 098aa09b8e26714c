/// The `stagecraft` command: finds the sub-command, and is the one place where a failure becomes a
/// message on standard error and an exit status. No stack traces: whatever went wrong has to say so
/// in words.

#include <algorithm>
#include <exception>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/compiler/lack_of_memory.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/credentials/credentials.h"
#include "stagecraft/tools/exit_code.h"
#include "stagecraft/tools/schedule/schedule.h"
#include "stagecraft/tools/sub_command.h"
#include "stagecraft/tools/trace/trace.h"
#include "stagecraft/tools/train/train.h"
#include "stagecraft/tools/worker/worker.h"

namespace stagecraft::tools {
namespace {

const std::vector<SubCommand>& sub_commands() {
  static const std::vector<SubCommand> commands{
      {"trace",
       "hold what a run recorded against its schedule",
       "the trace, or the schedule",
       &trace},
      {"train",
       "train a small Llama on the bytes of a text, by pipeline",
       "--dim, --ffn or --layers (its weights), --microbatch-size, --microbatches or --seq (what a "
       "step holds), or leave out --verify; --force tries what seems too large",
       &train},
      {"schedule",
       "make, check, simulate, show, convert, compare and repair schedules",
       "--devices, --microbatches or --chunks, or the file",
       &schedule},
      {"credentials",
       "make, renew and show what the processes of a cluster know each other by",
       "--members",
       &credentials},
      {"worker", "work for a cluster: run the stages it is sent", "its driver's program", &worker},
  };
  return commands;
}

std::string help() {
  std::string text =
      "Trains ordinary LibTorch modules by pipeline, from a schedule that is checked before it "
      "runs.\n"
      "Usage: stagecraft COMMAND [OPTIONS]\n\nCommands:\n";
  for (const SubCommand& command : sub_commands()) {
    text += fmt::format("  {:<11} {}\n", command.name, command.about);
  }
  return text +
         "\nExit status: 0 good; 1 the thing checked is wrong, the run failed or memory does not "
         "suffice; 2 wrong\nusage, a file that cannot be used, or output that could not be "
         "written; "
         "128 + a signal.\n"
         "stagecraft COMMAND --help lists the options of a command; --version says which one this "
         "is.\n";
}

const SubCommand& find_command(const std::string& name) {
  const auto& commands = sub_commands();
  const auto found = std::ranges::find(commands, name, &SubCommand::name);
  if (found != commands.end()) {
    return *found;
  }
  std::vector<std::string> names;
  for (const SubCommand& command : commands) {
    names.push_back(command.name);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("expected a command of stagecraft, found '{}'; {}see stagecraft --help",
                          name,
                          did_you_mean(name, names)));
}

/// What is thrown for lack of memory becomes an error that says what to ask less of.
ExitCode run_command(const SubCommand& command,
                     const std::vector<std::string>& words,
                     Console& console) {
  const std::string less = fmt::format("make smaller: {}", command.appetite);
  try {
    return command.run(words, console);
  } catch (const Error& error) {
    if (error.code() == Errc::DeviceOutOfMemory) {
      throw Error(error.code(), fmt::format("{}\n{}", error.what(), less));
    }
    throw;
  } catch (const std::exception& error) {
    if (const auto lack = lack_of_memory(error, less)) {
      throw Error(*lack);
    }
    throw;
  }
}

ExitCode dispatch(const std::vector<std::string>& words, Console& console) {
  if (words.empty()) {
    throw Error(Errc::UsageArgument, "expected a command, found none; see stagecraft --help");
  }
  if (words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
    print(help(), console);
    return ExitCode::Good;
  }
  if (words.front() == "--version") {
    print("stagecraft " STAGECRAFT_VERSION "\n", console);
    return ExitCode::Good;
  }
  return run_command(find_command(words.front()), {words.begin() + 1, words.end()}, console);
}

ExitCode run(const std::vector<std::string>& words, Console& console) {
  try {
    return dispatch(words, console);
  } catch (const Error& error) {
    console.err << "stagecraft: " << error.what() << '\n';
    return exit_code(error);
  } catch (const std::exception& error) {
    console.err
        << "stagecraft: an error that nobody expected: " << error.what()
        << "\nThis is a bug of stagecraft; please report it with the command that led to it.\n";
    return ExitCode::Failed;
  }
}

}  // namespace
}  // namespace stagecraft::tools

int main(int argc, char** argv) {
  using namespace stagecraft::tools;
  Console console = process_console();
  return static_cast<int>(run(std::vector<std::string>(argv + 1, argv + argc), console));
}
