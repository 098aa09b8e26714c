/// local_socket holds what both ends of an offer share: the name of a door, the check of the other
/// end's user, and the form of the message.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"

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

/// Returns a message of an arena's id and descriptors, for sendmsg() and recvmsg(). Views both:
/// `bytes` has the id, `control` the descriptors.
[[nodiscard]] inline msghdr message_of(iovec& bytes, std::span<char> control) {
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  return message;
}

/// The most descriptors that a door takes with an arena's id.
inline constexpr std::size_t kMostDescriptors = 2;

/// Sends an arena's id with these descriptors. Returns whether the message has left.
[[nodiscard]] inline bool send(const Descriptor& connection,
                               ArenaId arena,
                               std::span<const int> descriptors) {
  std::vector<char> control(CMSG_SPACE(descriptors.size_bytes()));
  iovec bytes{.iov_base = &arena, .iov_len = sizeof arena};
  const msghdr message = message_of(bytes, control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return sendmsg(connection.number(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof arena);
}

}  // namespace stagecraft::local_socket
