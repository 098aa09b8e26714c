/// Listener is a plain socket that listens at a free port of this host: nobody else can take the
/// port, and it sees whether a peer connects.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {

class Listener {
 public:
  Listener() {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
    REQUIRE(::listen(socket_, 8) == 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(socket_); }

  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in here{};
    socklen_t size = sizeof here;
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size) == 0);
    return ntohs(here.sin_port);
  }
  [[nodiscard]] std::string endpoint() const { return "tcp://127.0.0.1:" + std::to_string(port()); }
  [[nodiscard]] bool is_asked(int milliseconds) const {
    pollfd knock{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&knock, 1, milliseconds) == 1;
  }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

}  // namespace stagecraft::tests
