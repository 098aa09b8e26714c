/// The `stagecraft` command: finds the sub-command, and is the one place where a failure becomes a
/// message on standard error and an exit status. No stack traces: whatever went wrong has to say so
/// in words.

#include <exception>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/lack_of_memory.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/credentials/credentials.h"
#include "stagecraft/tools/doctor/doctor.h"
#include "stagecraft/tools/exit_code.h"
#include "stagecraft/tools/import/import.h"
#include "stagecraft/tools/launch/launch.h"
#include "stagecraft/tools/plan/plan.h"
#include "stagecraft/tools/profile/profile.h"
#include "stagecraft/tools/schedule/schedule.h"
#include "stagecraft/tools/sub_command.h"
#include "stagecraft/tools/trace/trace.h"
#include "stagecraft/tools/train/local_work.h"
#include "stagecraft/tools/train/train.h"
#include "stagecraft/tools/worker/worker.h"

namespace stagecraft::tools {
namespace {

using Run = decltype(SubCommand::run);

/// What `run` throws for lack of memory becomes an error that says what to ask less of.
Run thrifty(Run run, const std::string& appetite) {
  return [command = std::move(run), less = "make smaller: " + appetite](
             const std::vector<std::string>& words, Console& console) {
    try {
      return command(words, console);
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
  };
}

ExitCode dispatch(const std::vector<std::string>& words, Console& console) {
  if (!words.empty() && words.front() == "--version") {
    print("stagecraft " STAGECRAFT_VERSION "\n", console);
    return ExitCode::Good;
  }
  const CommandGroup group{
      .command = "stagecraft",
      .about =
          "Trains ordinary LibTorch modules by pipeline, from a schedule that is checked before it "
          "runs.",
      .column = 12,
      .commands =
          {{"trace",
            "",
            "hold what a run recorded against its schedule",
            thrifty(&trace, "the trace, or the schedule")},
           {"train",
            "",
            "train by pipeline: a small Llama on the bytes of a text, or a model from a file",
            thrifty(&train,
                    "--dim, --ffn or --layers (its weights), --microbatch-size, --microbatches or "
                    "--seq (what a step holds), or leave out --verify; of a model from a file, its "
                    "microbatches; --force tries what seems too large")},
           {"import",
            "",
            "say what is in a model's file, what is not supported, and where to cut it",
            thrifty(&import_model, "the model, or the data of --inputs")},
           {"plan",
            "",
            "choose cut and schedule from what a model costs, and say why",
            thrifty(&plan, "the costs, or --devices")},
           {"profile",
            "",
            "measure what a model's operators and transfers cost, for planners",
            thrifty(&profile_model, "--microbatch-sizes, or the model")},
           {"schedule",
            "",
            "make, check, simulate, show, convert, compare and repair schedules",
            thrifty(&schedule, "--devices, --microbatches or --chunks, or the file")},
           {"credentials",
            "",
            "make, renew and show what the processes of a cluster know each other by",
            thrifty(&credentials, "--members")},
           {"doctor",
            "",
            "check what commonly fails, on this machine and between hosts, and say how to mend it",
            thrifty(&doctor, "--hosts")},
           {"launch",
            "",
            "run a program with workers on many hosts: by ssh, or in a step of Slurm",
            thrifty(&launch, "its program")},
           {"worker",
            "",
            "work for a cluster: run the stages it is sent",
            thrifty(&worker, "its driver's program")}},
      .notes =
          "\nExit status: 0 good; 1 the thing checked is wrong, the run failed or memory does not "
          "suffice; 2 wrong\nusage, a file that cannot be used, or output that could not be "
          "written; 128 + a signal.\n"
          "stagecraft COMMAND --help lists the options of a command; --version says which one this "
          "is.\n"};
  return run_sub_command(group, words, console);
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
  register_local_work();  // for workers, too
  Console console = process_console();
  return static_cast<int>(run(std::vector<std::string>(argv + 1, argv + argc), console));
}
