#include "stagecraft/tools/credentials/credentials.h"

#include "stagecraft/tools/common/sub_command.h"
#include "stagecraft/tools/credentials/commands.h"

namespace stagecraft::tools {

ExitCode credentials(const std::vector<std::string>& arguments, Console& console) {
  const CommandGroup group{
      .command = "stagecraft credentials",
      .about = "Makes, renews and shows what the processes of a cluster know each other by.",
      .column = 17,
      .commands = {{"make",
                    "DIR",
                    "an authority, and a certificate and key per member",
                    &make_cluster_credentials},
                   {"renew",
                    "DIR MEMBER",
                    "another certificate for a member, or one more member",
                    &renew_credentials},
                   {"show",
                    "DIR",
                    "members, until when they are valid, and what is wrong",
                    &show_credentials}},
      .notes =
          "\nDIR is the folder of a cluster; in it, driver, worker-0, worker-1 ... are complete by "
          "themselves:\ncopy one to its host and name it there, and leave ca-key.pem where it is. "
          "Any member may act in\nthe whole cluster (docs/security.md).\n"
          "\nExit status: 0 good, 1 what show was asked about is expired, foreign, damaged or too "
          "open, 2 wrong\nusage, or a folder that cannot be read, is taken or cannot be written.\n"
          "stagecraft credentials COMMAND --help lists the options of a command.\n"};
  return run_sub_command(group, arguments, console);
}

}  // namespace stagecraft::tools
