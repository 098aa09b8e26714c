/// Connection is one end of a plain TCP connection, to see what a data port does with it.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>

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

}  // namespace stagecraft
