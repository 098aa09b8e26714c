/// Connection and Listener are the ends of plain TCP connections, to see what a data port does with
/// them.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include "stagecraft/futures/transport/port_address.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

/// Holds a connection that sends bytes and stays open until the socket closes.
class Connection {
 public:
  explicit Connection(const PortAddress& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(
        std::stoi(address.endpoint.substr(address.endpoint.rfind(':') + 1))));
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  Connection(const Connection&) = delete;
  Connection(Connection&&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection& operator=(Connection&&) = delete;
  ~Connection() { ::close(socket_); }

  void write(const std::string& bytes) const {
    static_cast<void>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  /// Returns whether the other end has closed the connection; drops received bytes.
  [[nodiscard]] bool is_ended() const {
    std::array<char, 1024> said{};
    ssize_t count = 0;
    do {
      count = ::recv(socket_, said.data(), said.size(), MSG_DONTWAIT);
    } while (count > 0);
    return count == 0 || errno != EAGAIN;
  }

 private:
  int socket_;
};

/// Holds a plain socket that sees whether a peer connects.
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

  [[nodiscard]] std::string endpoint() const {
    sockaddr_in here{};
    socklen_t size = sizeof here;
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size) == 0);
    return "tcp://127.0.0.1:" + std::to_string(ntohs(here.sin_port));
  }
  [[nodiscard]] bool is_asked(int milliseconds) const {
    pollfd knock{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&knock, 1, milliseconds) == 1;
  }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

}  // namespace stagecraft
