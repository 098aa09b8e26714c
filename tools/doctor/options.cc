#include "stagecraft/tools/doctor/options.h"

#include <CLI/CLI.hpp>

#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kDoctorCommand = "stagecraft doctor";
constexpr const char* kDoctorAbout =
    "Checks this machine and the hosts of a file for common problems before anything runs, and "
    "says how to repair them: builds, processors, memory, limits, GPUs, clocks, names, and ports "
    "between all pairs. With --run it says what ended a run, instead. See docs/cluster.md and "
    "docs/operate.md.";
constexpr const char* kDoctorFooter =
    "The doctor asks all hosts at once, over ssh as `launch` does, and leaves nothing there.\n"
    "Exit status: 0 no problem, but perhaps notes; 1 a problem, or a run that failed or was "
    "killed; "
    "2 wrong usage, or a file that cannot be used.\n"
    "Example: stagecraft doctor --hosts hosts";

}  // namespace

std::variant<DoctorRequest, DoctorHelp> parse_doctor_options(
    const std::vector<std::string>& arguments) {
  DoctorRequest request;
  CLI::App app(kDoctorAbout, kDoctorCommand);
  app.add_option("--hosts",
                 request.hosts,
                 "hosts' file of `launch`: check these hosts too, and compare them")
      ->type_name("FILE");
  app.add_option("--ssh",
                 request.ssh,
                 "program that reaches the hosts, with its options, e.g. 'ssh -p 2222' [ssh]")
      ->type_name("WORDS");
  app.add_option("--interface",
                 request.interface,
                 "interface or address of this machine that the hosts reach [the one that reaches "
                 "the first host]")
      ->type_name("NAME|ADDRESS");
  app.add_option("--credentials",
                 request.credentials,
                 "folder of a cluster or of one process: check these credentials")
      ->type_name("DIR");
  app.add_option("--run",
                 request.run,
                 "folder of `train --run-dir`: say how its run ended, what is lost, and how to go "
                 "on")
      ->type_name("DIR")
      ->excludes("--hosts")
      ->excludes("--credentials");
  app.add_flag("--json", request.json, "print one JSON object");
  app.add_flag("--answer", request.answer, "answer a doctor on another host");
  app.footer(kDoctorFooter);
  if (const auto help = parse_command_line(app, arguments)) {
    return *help;
  }
  if (!request.hosts && !(request.ssh.empty() && request.interface.empty())) {
    wrong_usage(kDoctorCommand, "--ssh and --interface expect --hosts FILE, found none");
  }
  return request;
}

}  // namespace stagecraft::tools
