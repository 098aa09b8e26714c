#include "stagecraft/tools/launch/options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kCommand = "stagecraft launch";
constexpr const char* kAbout =
    "Runs a program with workers on many hosts: over ssh on those of a file, or as the processes "
    "of "
    "a Slurm step.\n"
    "The program is `train` with its options, or any that has its cluster from "
    "Cluster::from_env(). docs/cluster.md tells more.";
constexpr const char* kFooter =
    "A line of the hosts' file: NAME [slots=N] [addr=ADDRESS] [worker=PATH] [VARIABLE=VALUE...]. "
    "The "
    "same build is\nneeded on all of them; ssh must not ask for anything. Workers end when the "
    "program does, however it ends.\n"
    "Exit status: the program's; 2 wrong usage, or a file that cannot be used.";

}  // namespace

std::variant<LaunchRequest, LaunchHelp> parse_launch_options(
    const std::vector<std::string>& arguments) {
  LaunchRequest request;
  const auto program = std::ranges::find(arguments, "--");
  if (program != arguments.end()) {
    request.program.assign(program + 1, arguments.end());
  }
  CLI::App app(kAbout, kCommand);
  app.option_defaults()->always_capture_default();
  app.add_option("--hosts", request.hosts, "where workers run; without it: the step of Slurm")
      ->type_name("FILE");
  app.add_option("--per-host", request.per_host, "workers on each, whatever slots= says")
      ->check(whole_number(1));
  app.add_option("--ssh", request.ssh, "what reaches the hosts, e.g. 'ssh -p 2222' [ssh]")
      ->type_name("WORDS");
  app.add_option(
         "--interface",
         request.interface,
         "where workers reach this host: an interface or an address [the one from which the "
         "first other host is reached]")
      ->type_name("NAME|ADDRESS");
  app.add_option("--log-dir", request.log_dir, "a file for what each worker writes")
      ->type_name("DIR");
  app.add_option("--meeting-place",
                 request.meeting_place,
                 "of a step of Slurm: a folder that all its hosts see [in the folder of sbatch]")
      ->type_name("DIR");
  app.add_option("--join-seconds", request.join_seconds, "longest wait for all workers")
      ->check(whole_number(1));
  app.add_option("--silence-seconds",
                 request.silence_seconds,
                 "after which silence a process is lost; more where jobs are suspended")
      ->check(whole_number(2));
  app.footer(kFooter);
  if (const auto help = parse_command_line(app, {arguments.begin(), program})) {
    return *help;
  }
  if (request.program.empty()) {
    wrong_usage(kCommand, "expected -- and a program behind it, e.g. -- train --steps 20");
  }
  if (!request.ssh.empty() && !request.hosts) {
    wrong_usage(kCommand, "--ssh expects --hosts FILE, found none");
  }
  if (request.per_host && !request.hosts) {
    wrong_usage(kCommand, "--per-host expects --hosts FILE, found none");
  }
  return request;
}

}  // namespace stagecraft::tools
