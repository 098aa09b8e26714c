#include "stagecraft/actors/launch/network/find_listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/network/resolve.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/time_left.h"

namespace stagecraft {
namespace {

using std::chrono::milliseconds;
using Time = std::chrono::steady_clock::time_point;

/// Longest wait for one address: the system would wait for minutes, and another address of the name
/// may be better.
constexpr milliseconds kOneAddress{1000};
/// Pause between two rounds.
constexpr milliseconds kAgain{100};

/// Returns 0, or the system's number for why no listener took the connection.
int knock(const addrinfo& there, milliseconds patience) {
  const int fd = socket(there.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return errno;
  }
  int fault = connect(fd, there.ai_addr, there.ai_addrlen) == 0 ? 0 : errno;
  if (fault == EINPROGRESS) {
    pollfd end{.fd = fd, .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof(fault);
    const bool is_over = poll(&end, 1, static_cast<int>(patience.count())) == 1;
    if (!is_over || getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &size) != 0) {
      fault = ETIMEDOUT;
    }
  }
  close(fd);
  return fault;
}

struct Round {
  std::string found;
  std::string faults;  ///< "10.0.0.1: Connection refused, fd00::1: Network is unreachable"
};

Round look_around(const std::string& host, std::uint16_t port, Time deadline) {
  Round round;
  try {
    const Addresses all = resolve(host, port);
    for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
      const std::string address = in_digits(*one->ai_addr);
      const int fault = knock(*one, std::min(kOneAddress, time_left(deadline)));
      if (fault == 0) {
        round.found = address;
        return round;
      }
      round.faults +=
          fmt::format("{}{}: {}", round.faults.empty() ? "" : ", ", address, std::strerror(fault));
    }
  } catch (const Error& error) {
    round.faults = error.what();
  }
  return round;
}

}  // namespace

std::string find_listener(const std::string& host, std::uint16_t port, milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool is_told = false;
  while (true) {
    const Round round = look_around(host, port, deadline);
    if (!round.found.empty()) {
      return round.found;
    }
    if (time_left(deadline) < kAgain) {
      throw Error(Errc::ClusterTimeout,
                  fmt::format("nobody has answered at {} within {} ms ({}): start the driver, or "
                              "join it at the address that it prints",
                              host_and_port(host, port),
                              patience.count(),
                              round.faults));
    }
    if (!std::exchange(is_told, true)) {
      log(Level::Warning, "driver is waited for", {{"why", round.faults}});
    }
    std::this_thread::sleep_for(kAgain);
  }
}

}  // namespace stagecraft
