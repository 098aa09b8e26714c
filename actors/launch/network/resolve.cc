#include "stagecraft/actors/launch/network/resolve.h"

#include <sys/socket.h>

#include <array>

#include <fmt/format.h>
#include <netinet/in.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

Addresses resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;  // otherwise each comes once per type of socket
  addrinfo* all = nullptr;
  const int fault = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &all);
  if (fault != 0) {
    throw Error(Errc::ClusterMember,
                fmt::format("{} is no name of a host that this one knows ({}): give its address",
                            host,
                            gai_strerror(fault)));
  }
  return {all, &freeaddrinfo};
}

std::string in_digits(const sockaddr& address) {
  const socklen_t size = address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::array<char, NI_MAXHOST> text{};
  const int fault =
      getnameinfo(&address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return fault == 0 ? text.data() : "";
}

}  // namespace stagecraft
