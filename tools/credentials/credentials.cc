#include "stagecraft/tools/credentials/credentials.h"

#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/credentials/commands.h"

namespace stagecraft::tools {

ExitCode credentials(const std::vector<std::string>& arguments, Console& console) {
  const CommandGroup group{
      .command = "stagecraft credentials",
      .about =
          "Makes, renews and shows the credentials by which the processes of a cluster know "
          "each other.",
      .commands = {{"make",
                    "DIR",
                    "make an authority, and a certificate and a key for each process",
                    &make_cluster_credentials},
                   {"renew",
                    "DIR NAME",
                    "renew the certificate of a process, or add a process",
                    &renew_credentials},
                   {"show",
                    "DIR",
                    "show the processes, the ends of their certificates, and all faults",
                    &show_credentials}},
      .notes =
          "\nDIR is the folder of a cluster. It has a folder for each process, driver, worker-0, "
          "worker-1 ..., with complete credentials: copy each to its host and name it there. Keep "
          "ca-key.pem in its place. A certificate makes its holder the driver or one worker "
          "(docs/security.md).\n"
          "\nExit status: 0 success; 1 `show` found credentials that are expired, foreign, damaged "
          "or too open; 2 wrong usage, or a folder that cannot be read, exists already or cannot "
          "be written.\n"
          "stagecraft credentials COMMAND --help lists the options of a command.\n"};
  return run_sub_command(group, arguments, console);
}

}  // namespace stagecraft::tools
