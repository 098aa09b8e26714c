/// local_socket holds what both ends of an offer share: the name of a door, and the check of the
/// other end's user.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>
#include <utility>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"

namespace stagecraft::local_socket {

/// Returns a new socket for messages that never waits. Check it: it is empty if too many files
/// are open.
[[nodiscard]] inline Descriptor make() {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Returns the abstract address of the port with this public key: it leaves no file, and exists in
/// one network namespace only.
[[nodiscard]] inline std::pair<sockaddr_un, socklen_t> address_of(const std::string& key) {
  const std::string name = "stagecraft-memory-" + key;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

/// Returns whether the process at the other end is of this process's user.
[[nodiscard]] inline bool is_of_this_user(const Descriptor& connection) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(connection.number(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         other.uid == geteuid();
}

}  // namespace stagecraft::local_socket
