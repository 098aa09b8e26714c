/// ssh_worker: how a worker is started on another host: by the system's ssh, which knows names,
/// keys and jumps already.
///
///     ssh -T -o BatchMode=yes [options] HOST  echo ...; env NAME=VALUE /path/stagecraft worker ...
///
/// Standard input is both what the worker reads its credentials from and its lifeline; so nothing
/// is copied there, and nothing is left when this process has ended, however it did.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/hosts.h"
#include "stagecraft/actors/launch/child_process.h"

namespace stagecraft {

/// The first line that comes back: ssh is through, and the host runs what it was given.
inline constexpr std::string_view kLetInBySsh = "stagecraft: ssh is through";

/// `ssh`: the program and options of the user's; empty: "ssh". `program`: the worker, with the
/// words that come behind it.
[[nodiscard]] ChildProgram ssh_worker(const std::vector<std::string>& ssh,
                                      const Host& host,
                                      const std::vector<std::string>& program);

/// How a worker on `host` ended, from how its ssh did (ChildProcess::end): a shell tells of a
/// signal by a status above 128, and ssh by 255 of what it could not do itself.
[[nodiscard]] std::string end_behind_ssh(const std::string& end, const std::string& host);

}  // namespace stagecraft
