#include "stagecraft/bench/cluster/sides.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace stagecraft::bench {
namespace {

constexpr std::string_view kTcp = "tcp://127.0.0.1:*";

void give(const Descriptor& socket, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string message(reinterpret_cast<const char*>(&size), sizeof size);
  message += text;  // in one piece: the other side may end as soon as it has read the last byte
  if (::send(socket.number(), message.data(), message.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(message.size())) {
    throw std::runtime_error("another side of the benchmark has ended");
  }
}

std::string taken(const Descriptor& socket) {
  const auto read = [&socket](void* data, std::size_t size) {
    if (size > 0 &&
        ::recv(socket.number(), data, size, MSG_WAITALL) != static_cast<ssize_t>(size)) {
      throw std::runtime_error("another side of the benchmark has ended");
    }
  };
  std::uint32_t size = 0;
  read(&size, sizeof size);
  std::string text(size, '\0');
  read(text.data(), size);
  return text;
}

/// Waits for the processes of the other sides.
void require_success(const std::vector<pid_t>& others) {
  for (std::size_t i = 0; i < others.size(); ++i) {
    int status = 1;
    if (waitpid(others[i], &status, 0) != others[i] || status != 0) {
      throw std::runtime_error(fmt::format(
          "side {} of the benchmark has {}",
          i + 1,
          WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status)) : "failed"));
    }
  }
}

}  // namespace

void Side::run(int sides, const std::function<void(Side&)>& work) {
  std::fflush(nullptr);
  Side first(0, sides);
  std::vector<pid_t> others;
  for (int number = 1; number < sides; ++number) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw std::runtime_error("cannot make a socket");
    }
    Descriptor here(ends[0]), there(ends[1]);
    const pid_t process = fork();
    if (process == 0) {
      here = Descriptor();
      first.sockets_.clear();
      Side other(number, sides);
      other.sockets_.push_back(std::move(there));
      int status = 0;
      try {
        work(other);
      } catch (const std::exception& error) {
        fmt::print(stderr, "side {}: {}\n", number, error.what());
        status = 1;
      }
      _exit(status);
    }
    others.push_back(process);
    first.sockets_.push_back(std::move(here));
  }
  try {
    work(first);
  } catch (const std::exception&) {
    require_success(others);  // it says more
    throw;
  }
  require_success(others);
}

std::vector<std::string> Side::exchange(const std::string& text) {
  std::vector<std::string> all(static_cast<std::size_t>(sides_));
  if (is_first()) {
    all[0] = text;
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      all[i + 1] = taken(sockets_[i]);
    }
    for (const Descriptor& socket : sockets_) {
      for (const std::string& one : all) {
        give(socket, one);
      }
    }
    return all;
  }
  give(sockets_[0], text);
  for (std::string& one : all) {
    one = taken(sockets_[0]);
  }
  return all;
}

Link::Link(Side& side, const DataPortOptions& options) {
  constexpr NetworkId kNetwork{1};
  DataPortOptions here = options;
  here.bind = kTcp;
  port = DataPort::open(here);
  network = std::make_unique<RoutedNetwork>(port, kNetwork, side.sides());
  const PortAddress& address = port->address();
  const std::vector<std::string> endpoints = side.exchange(address.endpoint);
  const std::vector<std::string> keys = side.exchange(address.key);
  for (int rank = 0; rank < side.sides(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    if (rank != side.number()) {
      network->place(Rank(rank), {endpoints[i], keys[i]});
    }
  }
  end = network->endpoint(Rank(side.number()));
  (void)side.exchange("");  // every side has its ranks placed
}

}  // namespace stagecraft::bench
