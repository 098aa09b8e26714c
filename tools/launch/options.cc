#include "stagecraft/tools/launch/options.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kLaunchCommand = "stagecraft launch";
constexpr const char* kProgram = "-- PROGRAM [ARGUMENTS]";
constexpr const char* kAbout =
    "Runs a program with workers on many hosts. It starts the workers over ssh on the hosts of a "
    "file; inside a step of Slurm they are the other processes of the step.\n"
    "PROGRAM is `train` with its options, or any program that gets its cluster from "
    "Cluster::from_env(). See docs/cluster.md.";
constexpr const char* kFooter =
    "Each line of the hosts' file is: NAME [slots=N] [addr=ADDRESS] [worker=PATH] "
    "[VARIABLE=VALUE...]. All hosts need the same build, and ssh must work without a question. "
    "Workers end when the program ends for any reason.\n"
    "Environment (docs/environment.md): the program gets its cluster in variables STAGECRAFT_*, "
    "which launch sets from these options. Others, such as STAGECRAFT_PORT and STAGECRAFT_WORKER, "
    "reach it unchanged.\n"
    "Exit status: that of the program; 2 wrong usage, or a file that cannot be used.\n"
    "Example: stagecraft launch --hosts hosts -- train --schedule plan.txt --steps 20";

}  // namespace

std::variant<LaunchRequest, LaunchHelp> parse_launch_options(
    const std::vector<std::string>& arguments) {
  LaunchRequest request;
  const auto program = std::ranges::find(arguments, "--");
  if (program != arguments.end()) {
    request.program.assign(program + 1, arguments.end());
  }
  CLI::App app(kAbout, kLaunchCommand);
  app.option_defaults()->always_capture_default();
  app.add_option("--hosts",
                 request.hosts,
                 "file with the hosts of the workers [the processes of this step of Slurm]")
      ->type_name("FILE");
  app.add_option(
         "--per-host", request.per_host, "number of workers on each host, in place of slots=")
      ->check(whole_number(1));
  app.add_option("--ssh",
                 request.ssh,
                 "program that reaches the hosts, with its options, e.g. 'ssh -p 2222' [ssh]")
      ->type_name("WORDS");
  app.add_option("--interface",
                 request.interface,
                 "interface or address of this host that workers reach [the one that reaches the "
                 "first other host]")
      ->type_name("NAME|ADDRESS");
  app.add_option("--log-dir",
                 request.log_dir,
                 "folder that gets a file for each worker: its output, where it ran, its stages, "
                 "and how it ended")
      ->type_name("DIR");
  app.add_option("--meeting-place",
                 request.meeting_place,
                 "in a step of Slurm: folder that all its hosts see [the folder of submission]")
      ->type_name("DIR");
  app.add_option("--join-seconds", request.join_seconds, "longest wait for all workers")
      ->type_name("SECONDS")
      ->check(whole_number(1));
  app.add_option("--silence-seconds",
                 request.silence_seconds,
                 "seconds of silence after which a process counts as lost; allow more if jobs are "
                 "suspended")
      ->type_name("SECONDS")
      ->check(whole_number(2));
  app.footer(kFooter);
  if (const auto help = parse_command_line(app, {arguments.begin(), program}, kProgram)) {
    return *help;
  }
  if (request.program.empty()) {
    wrong_usage(kLaunchCommand,
                fmt::format("expected {}, e.g. -- train --steps 20, found none", kProgram));
  }
  if (!request.ssh.empty() && !request.hosts) {
    wrong_usage(kLaunchCommand, "--ssh expects --hosts FILE, found none");
  }
  if (request.per_host && !request.hosts) {
    wrong_usage(kLaunchCommand, "--per-host expects --hosts FILE, found none");
  }
  return request;
}

}  // namespace stagecraft::tools
