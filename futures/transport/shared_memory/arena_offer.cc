#include "stagecraft/futures/transport/shared_memory/arena_offer.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "stagecraft/futures/transport/shared_memory/local_socket.h"

namespace stagecraft {

ArenaOffer::ArenaOffer(const std::string& key) {
  Descriptor connection = local_socket::make();
  if (!connection) {
    return;
  }
  const auto [address, size] = local_socket::address_of(key);
  if (connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    is_possible_ = errno == EAGAIN || errno == EINTR;
  } else if (!local_socket::is_of_this_user(connection)) {
    is_possible_ = false;
  } else {
    connection_ = std::move(connection);
  }
}

bool ArenaOffer::send(ArenaId arena, const Descriptor& memory) const {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec bytes{.iov_base = &arena, .iov_len = sizeof arena};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = memory.number();
  std::memcpy(CMSG_DATA(header), &number, sizeof number);
  return sendmsg(connection_.number(), &message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof arena);
}

ArenaOffer::Answer ArenaOffer::answer() const {
  char taken = 0;
  const ssize_t got = recv(connection_.number(), &taken, sizeof taken, MSG_DONTWAIT);
  if (got == sizeof taken) {
    return Answer::Taken;
  }
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? Answer::None : Answer::Refused;
}

}  // namespace stagecraft
