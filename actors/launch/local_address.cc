#include "stagecraft/actors/launch/local_address.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Connecting a socket of datagrams sends nothing, but has to be to some port.
constexpr const char* kAnyPort = "9";

std::string in_digits(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int fault =
      getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return fault == 0 ? text.data() : "";
}

socklen_t size_of(const sockaddr& address) {
  return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

bool is_internet(const ifaddrs& one) {
  return one.ifa_addr != nullptr &&
         (one.ifa_addr->sa_family == AF_INET || one.ifa_addr->sa_family == AF_INET6);
}

/// Empty where none is to be had.
std::string source_towards(const addrinfo& there) {
  const int fd = socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage here{};
  socklen_t size = sizeof(here);
  std::string found;
  if (fd >= 0 && connect(fd, there.ai_addr, there.ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) == 0) {
    found = in_digits(reinterpret_cast<const sockaddr*>(&here), size);
  }
  if (fd >= 0) {
    close(fd);
  }
  return found;
}

}  // namespace

std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* all = nullptr;
  const int fault = getaddrinfo(host.c_str(), kAnyPort, &hints, &all);
  if (fault != 0) {
    throw Error(Errc::ClusterMember,
                fmt::format("{} is no name of a host that this one knows ({}): give its address",
                            host,
                            gai_strerror(fault)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(all, &freeaddrinfo);
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    if (std::string found = source_towards(*one); !found.empty()) {
      return found;
    }
  }
  throw Error(Errc::ClusterMember,
              fmt::format("no way leads from this host to {} ({})", host, std::strerror(errno)));
}

std::string address_of_interface(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) {
    throw Error(
        Errc::ClusterMember,
        fmt::format("the interfaces of this host cannot be read: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, &freeifaddrs);
  std::string later;  // of IPv6
  std::vector<std::string> known;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (!is_internet(*one)) {
      continue;
    }
    const std::string address = in_digits(one->ifa_addr, size_of(*one->ifa_addr));
    known.push_back(fmt::format("{} ({})", one->ifa_name, address));
    if (address == interface ||
        (interface == one->ifa_name && one->ifa_addr->sa_family == AF_INET)) {
      return address;
    }
    if (interface == one->ifa_name && later.empty()) {
      later = address;
    }
  }
  if (later.empty()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "this host has no interface \"{}\"; it has {}", interface, fmt::join(known, ", ")));
  }
  return later;
}

std::string host_name(const Host& host) {
  return host.name.substr(host.name.find('@') + 1);
}

std::string address_for_hosts(const std::string& interface, const std::vector<Host>& hosts) {
  if (!interface.empty()) {
    return address_of_interface(interface);
  }
  const Host& first = hosts.front();
  return address_towards(first.address.empty() ? host_name(first) : first.address);
}

std::string host_and_port(const std::string& address, std::uint16_t port) {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

std::string any_port_of(const std::string& address) {
  return address.find(':') == std::string::npos ? fmt::format("tcp://{}:*", address)
                                                : fmt::format("tcp://[{}]:*", address);
}

}  // namespace stagecraft
