/// The `stagecraft` command. Commands that plan, judge and draw run here, and start at once.
/// Commands that need LibTorch or the cluster are in the runtime's program, which this one becomes.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/process/standard_lack_of_memory.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/credentials/credentials.h"
#include "stagecraft/tools/dag/dag.h"
#include "stagecraft/tools/guarded.h"
#include "stagecraft/tools/memory_abort.h"
#include "stagecraft/tools/plan/plan.h"
#include "stagecraft/tools/runtime_words.h"
#include "stagecraft/tools/schedule/schedule.h"
#include "stagecraft/tools/trace/trace.h"
#include "stagecraft/tools/version.h"
#include "stagecraft/tools/watch/watch_commands.h"

namespace stagecraft::tools {
namespace {

/// Returns the path beside this program's folder, both in a build and in an installation.
std::string runtime_program() {
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (here.parent_path() / "libexec" / "stagecraft" / "stagecraft").string();
}

/// Returns only if the program cannot be run; errno then has the reason.
void become_runtime(char* name, std::vector<std::string>& words) {
  std::vector<char*> arguments{name};
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  execv(runtime_program().c_str(), arguments.data());
}

SubCommand command(std::string_view word,
                   std::string_view about,
                   decltype(SubCommand::run) run,
                   const char* appetite) {
  return {word, "", about, thrifty(std::move(run), appetite, &standard_lack_of_memory)};
}

[[noreturn]] void refuse_without_runtime() {
  throw Error(Errc::UsageFile,
              fmt::format("cannot run {}, the program that has this command: {}; build "
                          "or install all of Stagecraft",
                          runtime_program(),
                          std::strerror(errno)));
}

/// Used for help. Runs only if this program could not become the other.
SubCommand of_runtime(std::string_view word) {
  return {word, "", about(word), [](const std::vector<std::string>&, Console&) -> ExitCode {
            refuse_without_runtime();
          }};
}

/// Returns whether the other program has the command. `dag` is in both.
bool is_of_runtime(const std::vector<std::string>& words) {
  if (words.empty() || words.front() != "dag") {
    return !words.empty() && is_runtime_word(words.front());
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  return names_model(rest) || asks_for_options(rest);
}

ExitCode dag_without_model(const std::vector<std::string>& words, Console& console) {
  if (names_model(words)) {
    refuse_without_runtime();
  }
  return dag(words, console);
}

ExitCode dispatch(const std::vector<std::string>& words, Console& console) {
  if (!words.empty() && words.front() == "--version") {
    print(fmt::format("stagecraft {}\n", version_text()), console);
    return ExitCode::Good;
  }
  if (!words.empty() && (words.front() == "-v" || words.front() == "-V")) {
    wrong_usage("stagecraft",
                fmt::format("expected a command of stagecraft, found '{}'; stagecraft --version "
                            "prints the version",
                            words.front()));
  }
  const CommandGroup group{
      .command = "stagecraft",
      .about =
          "Trains LibTorch modules as pipelines, by a schedule that is checked before it runs.",
      .commands = {of_runtime("train"),
                   of_runtime("eval"),
                   of_runtime("predict"),
                   of_runtime("import"),
                   of_runtime("profile"),
                   command("plan",
                           "choose the cut and the schedule of a model from its costs",
                           &plan,
                           "the costs, or --devices"),
                   command("schedule",
                           "make, check, simulate, draw, convert, compare and repair schedules",
                           &schedule,
                           "--devices, --microbatches or --chunks, or the file"),
                   command("dag",
                           "show the computation and communication of a strategy",
                           &dag_without_model,
                           "the microbatches or stages, or the file"),
                   command("trace",
                           "compare a recorded run with its schedule",
                           &trace,
                           "the trace, or the schedule"),
                   command("watch", "show a run of train --serve", &watch_run, "the run's state"),
                   command(
                       "status", "print one line about such a run", &run_status, "the run's state"),
                   command("stop", "end such a run after its step", &stop_run, "the run's state"),
                   command("checkpoint",
                           "make such a run write a checkpoint",
                           &checkpoint_run,
                           "the run's state"),
                   of_runtime("doctor"),
                   of_runtime("launch"),
                   of_runtime("worker"),
                   command("credentials",
                           "make, renew and show the credentials of a cluster",
                           &credentials,
                           "--workers")},
      .notes =
          "\nExit status: 0 success; 1 the run failed, the checked thing is wrong, or memory does "
          "not suffice; 2 wrong usage, a file that cannot be used, or output that cannot be "
          "written; 128 + N ended by signal N.\n"
          "stagecraft COMMAND --help, or stagecraft help COMMAND, lists the options of a command; "
          "stagecraft --version prints the version.\n"};
  return run_sub_command(group, words, console);
}

}  // namespace
}  // namespace stagecraft::tools

int main(int argc, char** argv) {
  using namespace stagecraft::tools;
  std::vector<std::string> words = help_by_option({argv + 1, argv + argc});
  if (is_of_runtime(words)) {
    become_runtime(argv[0], words);  // before the console: the runtime sets up its own
  }
  const int failed = errno;
  tell_lack_of_memory_at_abort();
  Console console = process_console();
  errno = failed;  // the missing command reports it
  return static_cast<int>(guarded([&] { return dispatch(words, console); }, console));
}
