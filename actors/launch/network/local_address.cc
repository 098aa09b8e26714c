#include "stagecraft/actors/launch/network/local_address.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "stagecraft/actors/launch/network/resolve.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Connecting a datagram socket sends nothing, but needs a port.
constexpr std::uint16_t kAnyPort = 9;
constexpr const char* kLoopback = "127.0.0.1";

struct InterfaceAddress {
  std::string interface;
  std::string address;
  int distance = 0;  ///< others reach addresses of a smaller distance better
};

int distance_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return 0;
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr) ? 2 : 1;
}

std::vector<InterfaceAddress> own_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) {
    throw Error(
        Errc::ClusterMember,
        fmt::format("the interfaces of this host cannot be read: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, &freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr != nullptr &&
        (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6)) {
      found.push_back({one->ifa_name, in_digits(*one->ifa_addr), distance_of(*one->ifa_addr)});
    }
  }
  return found;
}

/// Returns an address of IPv6 as the system writes it; other text unchanged.
std::string as_written(const std::string& text) {
  in6_addr six{};
  std::array<char, INET6_ADDRSTRLEN> written{};
  const bool is_six = inet_pton(AF_INET6, text.c_str(), &six) == 1 &&
                      inet_ntop(AF_INET6, &six, written.data(), written.size()) != nullptr;
  return is_six ? written.data() : text;
}

/// Returns an empty text if there is no route.
std::string source_towards(const addrinfo& there) {
  const int fd = socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage here{};
  socklen_t size = sizeof(here);
  std::string found;
  if (fd >= 0 && connect(fd, there.ai_addr, there.ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) == 0) {
    found = in_digits(reinterpret_cast<const sockaddr&>(here));
  }
  if (fd >= 0) {
    close(fd);
  }
  return found;
}

/// Returns the name by which others reach it, not the one for ssh.
std::string name_of(const Host& host) {
  return host.address.empty() ? host_name(host) : host.address;
}

}  // namespace

std::string address_towards(const std::string& host) {
  const Addresses all = resolve(host, kAnyPort);
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    if (std::string found = source_towards(*one); !found.empty()) {
      return found;
    }
  }
  throw Error(Errc::ClusterMember,
              fmt::format("no way leads from this host to {} ({})", host, std::strerror(errno)));
}

std::string address_towards(const std::vector<Host>& hosts) {
  std::optional<Error> unknown;
  for (const Host& host : hosts) {
    try {
      if (std::string found = address_towards(name_of(host)); !is_loopback(found)) {
        return found;
      }
    } catch (const Error& error) {  // ssh may know another way to it
      unknown = unknown.value_or(error);
    }
  }
  if (unknown) {
    throw Error(*unknown);
  }
  return kLoopback;
}

std::string address_of_interface(const std::string& interface) {
  const std::vector<InterfaceAddress> own = own_addresses();
  const std::string address = as_written(interface);
  std::vector<std::string> known;
  const InterfaceAddress* best = nullptr;
  for (const InterfaceAddress& one : own) {
    known.push_back(fmt::format("{} ({})", one.interface, one.address));
    const bool is_meant = one.interface == interface || one.address == address;
    if (is_meant && (best == nullptr || one.distance < best->distance)) {
      best = &one;
    }
  }
  if (best == nullptr) {
    throw Error(Errc::UsageArgument,
                fmt::format("this host has neither an interface nor an address \"{}\"; it has {}",
                            interface,
                            fmt::join(known, ", ")));
  }
  return best->address;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string host_name(const Host& host) {
  return host.name.substr(host.name.find('@') + 1);
}

std::string address_for_hosts(const std::string& interface, const std::vector<Host>& hosts) {
  return interface.empty() ? address_towards(hosts) : address_of_interface(interface);
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
