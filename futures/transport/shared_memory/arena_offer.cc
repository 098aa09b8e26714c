#include "stagecraft/futures/transport/shared_memory/arena_offer.h"

#include <cerrno>
#include <utility>
#include <vector>

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

bool ArenaOffer::send(ArenaId arena, const Descriptor& memory, const Descriptor* lent) const {
  std::vector<int> numbers{memory.number()};
  if (lent != nullptr) {
    numbers.push_back(lent->number());
  }
  return local_socket::send(connection_, arena, numbers);
}

ArenaOffer::Answer ArenaOffer::answer() const {
  char taken = 0;
  const ssize_t got = recv(connection_.number(), &taken, sizeof taken, MSG_DONTWAIT);
  if (got == sizeof taken) {
    return Answer::Taken;
  }
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? Answer::None : Answer::Refused;
}

bool ArenaOffer::ring() const {
  const char once = 1;
  const ssize_t sent =
      ::send(connection_.number(), &once, sizeof once, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent == sizeof once || errno == EAGAIN || errno == EINTR;  // full: it has rung before
}

}  // namespace stagecraft
