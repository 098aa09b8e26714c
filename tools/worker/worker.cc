#include "stagecraft/tools/worker/worker.h"

#include <algorithm>
#include <string_view>

#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/tools/common/output.h"

namespace stagecraft::tools {
namespace {

constexpr std::string_view kHelp =
    "Works for a cluster until the driver has gone: runs the stages that it receives, with no code "
    "of the driver's own program.\n"
    "Usage: stagecraft worker --join HOST:PORT --credentials DIR [OPTIONS]\n\n"
    "Clusters of processes start their workers themselves. You can also start one by hand, before "
    "or after its driver.\nIt then takes a missing place, for example that of a lost worker.\n\n"
    "Options:\n"
    "  --join HOST:PORT   address of the driver; [ADDRESS]:PORT for IPv6\n"
    "  --credentials DIR  folder of this member, made by stagecraft credentials make\n"
    "  --place N          number of the worker in the cluster [any that is missing]\n"
    "  --incarnation N    how often the worker in this place was replaced [any number]\n"
    "  --bind ADDRESS     interface or address of this host at which tensors arrive [the one from "
    "which the driver is reached]\n"
    "  --heartbeat MS     interval of its signs of life (1000); the driver's must be the same\n"
    "  --silence MS       silence after which the driver counts as lost (5000); the driver's must "
    "be the same\n"
    "  --patience MS      longest time to join (30000)\n"
    "  --lifeline FD      pipe: the worker ends when the other end is closed\n"
    "\nExit status: 0 if the driver has gone; 1 if the worker could not join; 2 for wrong usage or "
    "credentials that cannot be used.\n";

}  // namespace

ExitCode worker(const std::vector<std::string>& arguments, Console& console) {
  if (std::ranges::any_of(
          arguments, [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    write_output("", std::string(kHelp), console);
    return ExitCode::Good;
  }
  static_cast<void>(run_worker_process(parse_worker_arguments(arguments)));
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
