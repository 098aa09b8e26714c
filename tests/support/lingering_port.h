/// Makes a port of this host at which a connection has just ended, as a server leaves it that
/// closes first. For a minute the system refuses the port to sockets that do not ask for reuse.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace stagecraft::tests {

[[nodiscard]] inline std::uint16_t lingering_port() {
  const auto require = [](bool good) {
    if (!good) {
      throw std::runtime_error("no connection can be made on this host");
    }
  };
  const auto as_any = [](sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); };
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  require(listening >= 0 && client >= 0);
  const int on = 1;
  require(setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  require(bind(listening, as_any(address), size) == 0 && listen(listening, 1) == 0);
  require(getsockname(listening, as_any(address), &size) == 0);
  require(connect(client, as_any(address), size) == 0);
  const int taken = accept(listening, nullptr, nullptr);
  require(taken >= 0);
  close(taken);  // closed first, so that this end lingers
  char nothing = 0;
  require(read(client, &nothing, 1) == 0);
  close(client);
  close(listening);
  const std::uint16_t port = ntohs(address.sin_port);
  const int plain = socket(AF_INET, SOCK_STREAM, 0);
  const bool lingers = bind(plain, as_any(address), size) != 0;
  close(plain);
  require(lingers);
  return port;
}

}  // namespace stagecraft::tests
