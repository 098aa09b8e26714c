/// ssh is the way of workers on other hosts: the fleet starts them by the system's ssh, which knows
/// names, keys and jumps.
///
///     ssh -T -o BatchMode=yes [options] HOST  echo ...; env NAME=VALUE /path/stagecraft worker ...
///
/// The worker reads its credentials from standard input, which is also its lifeline. So nothing is
/// copied to the host, and nothing stays there after this process has ended in any way.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"
#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/ways/worker_way.h"

namespace stagecraft {

/// Starts workers on the options' hosts. Errors: UsageFile if no worker program is found here, for
/// hosts whose lines name none.
[[nodiscard]] std::unique_ptr<const WorkerWay> workers_by_ssh(const SpawnOptions& options);

/// The first line that comes back. It says that ssh has connected, and that the host runs the given
/// program.
inline constexpr std::string_view kLetInBySsh = "stagecraft: ssh is through";

/// Returns the program that runs another one on a host. `ssh`: the user's program and options;
/// empty: "ssh". `program`: the worker and its arguments.
[[nodiscard]] ChildProgram ssh_worker(const std::vector<std::string>& ssh,
                                      const Host& host,
                                      const std::vector<std::string>& program);

/// Returns how a worker on `host` ended, given how its ssh ended (ChildProcess::end). A shell
/// reports a signal by a status above 128; ssh reports its own failures by 255.
[[nodiscard]] std::string end_behind_ssh(const std::string& end, const std::string& host);

}  // namespace stagecraft
