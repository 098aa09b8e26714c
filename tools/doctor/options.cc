#include "stagecraft/tools/doctor/options.h"

#include <CLI/CLI.hpp>

#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kDoctorCommand = "stagecraft doctor";
constexpr const char* kDoctorAbout =
    "Checks what commonly fails before anything runs, on this machine and the hosts of a file, and "
    "says how to mend it:\nbuilds, processors, memory, limits, GPUs, clocks, names, and ports "
    "between "
    "all pairs.\ndocs/cluster.md tells more.";
constexpr const char* kDoctorFooter =
    "The hosts are asked over ssh, as `launch` reaches them, all at once; nothing stays there.\n"
    "Exit status: 0 no problem (there may be notes); 1 a problem; 2 wrong usage, or a file that "
    "cannot be used.";

}  // namespace

std::variant<DoctorRequest, DoctorHelp> parse_doctor_options(
    const std::vector<std::string>& arguments) {
  DoctorRequest request;
  CLI::App app(kDoctorAbout, kDoctorCommand);
  app.add_option(
         "--hosts", request.hosts, "those of `launch`: asked too, and held against each other")
      ->type_name("FILE");
  app.add_option("--ssh", request.ssh, "what reaches them, e.g. 'ssh -p 2222' [ssh]")
      ->type_name("WORDS");
  app.add_option("--interface",
                 request.interface,
                 "where they reach this machine: an interface or an address [the one from which "
                 "the first host is reached]")
      ->type_name("NAME|ADDRESS");
  app.add_option("--credentials", request.credentials, "looked through: a cluster's or a member's")
      ->type_name("DIR");
  app.add_flag("--json", request.json, "as one JSON object");
  app.add_flag("--answer", request.answer, "what a doctor elsewhere runs here");
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
