#include "stagecraft/tools/worker/worker.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/help/describe.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kWorkerAbout =
    "Works for a cluster: runs the stages that its driver sends, until the driver ends. It runs no "
    "code of the driver's program.\n"
    "Clusters of processes start their workers themselves. A worker that you start by hand may "
    "start before or after its driver. It takes the place of the number in its certificate, or, if "
    "the cluster has no such place, that of a lost worker. See docs/cluster.md.";
constexpr const char* kWorkerFooter =
    "Exit status: 0 the driver has ended, or is out of reach; 1 the worker could not join; 2 wrong "
    "usage, or credentials that cannot be used; 3 the driver may go on, with another worker in its "
    "place: start that one.\n"
    "Example: stagecraft worker --join node-a:4711 --credentials worker-0";

struct WorkerOption {
  const char* name;
  const char* value;
  const char* text;
};

// parse_worker_arguments() reads them, also in programs that have workers of their own.
constexpr std::array kWorkerOptions{
    WorkerOption{
        "--join", "HOST:PORT", "address at which the driver listens; [ADDRESS]:PORT for IPv6"},
    WorkerOption{"--credentials",
                 "DIR",
                 "folder of this worker, from those that `stagecraft credentials make` wrote"},
    WorkerOption{"--place", "N", "number of the worker to become [that of its certificate]"},
    WorkerOption{"--incarnation", "N", "number of replacements of that worker [any]"},
    WorkerOption{"--bind",
                 "ADDRESS",
                 "interface or address of this host at which tensors arrive [the one that reaches "
                 "the driver]"},
    WorkerOption{
        "--heartbeat", "MS", "milliseconds between signs of life, as at the driver [1000]"},
    WorkerOption{"--silence",
                 "MS",
                 "milliseconds of silence after which the driver counts as lost, as at the driver "
                 "[5000]"},
    WorkerOption{"--patience", "MS", "longest time to join, in milliseconds [30000]"},
    WorkerOption{"--outlive",
                 "MS",
                 "milliseconds to wait for another driver, with copies of the states of this one, "
                 "after it is gone [0]"},
    WorkerOption{"--lifeline", "FD", "end when the other end of this pipe is closed"},
};

std::string worker_help(const std::vector<std::string>& arguments) {
  CLI::App app(kWorkerAbout, "stagecraft worker");
  app.footer(kWorkerFooter);
  std::string unused;
  for (const WorkerOption& option : kWorkerOptions) {
    app.add_option(option.name, unused, option.text)->type_name(option.value);
  }
  return parse_command_line(app, arguments).value_or("");
}

}  // namespace

ExitCode worker(const std::vector<std::string>& arguments, Console& console) {
  if (std::ranges::any_of(arguments, [](const std::string& word) {
        return word == "--help" || word == "-h" || word == kDescribe;
      })) {
    write_output("", worker_help(arguments), console);
    return ExitCode::Good;
  }
  return static_cast<ExitCode>(run_worker_process(parse_worker_arguments(arguments)));
}

}  // namespace stagecraft::tools
