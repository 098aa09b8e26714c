#include "stagecraft/tools/worker/worker.h"

#include <algorithm>
#include <string_view>

#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/tools/common/output.h"

namespace stagecraft::tools {
namespace {

constexpr std::string_view kHelp =
    "Works for a cluster: runs the stages it is sent, with none of the program's own code, until "
    "the driver has gone.\n"
    "Usage: stagecraft worker --join HOST:PORT --credentials DIR [OPTIONS]\n\n"
    "Clusters of processes start it by themselves. Started by hand, it may come before its driver "
    "or "
    "after,\nand takes a place that is missing, also that of a worker that was lost.\n\n"
    "Options:\n"
    "  --join HOST:PORT   where the driver listens; [ADDRESS]:PORT of IPv6\n"
    "  --credentials DIR  this member's folder of those that stagecraft credentials make has made\n"
    "  --place N          which of the cluster's workers it is [any that is missing]\n"
    "  --incarnation N    how often that one was replaced [however often]\n"
    "  --bind ADDRESS     an interface or address of this host at which tensors arrive [the one "
    "from "
    "which the driver is reached]\n"
    "  --heartbeat MS     how often it says that it is there (1000); as the driver's\n"
    "  --silence MS       after which silence the other end is lost (5000); as the driver's\n"
    "  --patience MS      longest time to join (30000)\n"
    "  --lifeline FD      ends when the other end of this pipe is closed\n"
    "\nExit status: 0 the driver has gone; 1 it could not join; 2 wrong usage or credentials that "
    "cannot be used.\n";

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
