#include "stagecraft/tools/doctor/talk/door.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <netinet/in.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/doctor/facts/digits.h"

namespace stagecraft::tools {
namespace {

std::string new_token() {
  std::random_device chance;
  return fmt::format("{:08x}{:08x}", chance(), chance());
}

std::uint16_t port_of(int socket) {
  sockaddr_storage here{};
  socklen_t size = sizeof(here);
  getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size);
  return ntohs(here.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(here).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(here).sin_port);
}

}  // namespace

Door::Door(const std::string& address) : place_{address, 0, new_token()} {
  const SocketAddress here = address_of_digits(address, 0);
  if (here) {
    listening_ = socket(here->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  if (listening_ < 0 || bind(listening_, here->ai_addr, here->ai_addrlen) != 0 ||
      listen(listening_, SOMAXCONN) != 0) {
    const std::string reason = here ? strerror(errno) : "that is no address in digits";
    if (listening_ >= 0) {
      close(listening_);
    }
    throw Error(Errc::ClusterMember,
                fmt::format("no port can be opened at \"{}\": {}", address, reason));
  }
  place_.port = port_of(listening_);
  thread_ = std::thread([this] { welcome(); });
}

Door::~Door() {
  shutdown(listening_, SHUT_RDWR);  // wakes the thread
  thread_.join();
  close(listening_);
}

void Door::welcome() const {
  while (true) {
    const int guest = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (guest >= 0) {
      static_cast<void>(send(guest, place_.token.data(), place_.token.size(), MSG_NOSIGNAL));
      close(guest);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

}  // namespace stagecraft::tools
