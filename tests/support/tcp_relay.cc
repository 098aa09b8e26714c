#include "stagecraft/tests/support/tcp_relay.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace stagecraft::tests {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int new_socket() {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) {
    throw std::runtime_error("no socket for a relay");
  }
  return made;
}

}  // namespace

TcpRelay::TcpRelay(std::uint16_t to) : to_(to), listening_(new_socket()) {
  sockaddr_in here = loopback(0);
  socklen_t size = sizeof here;
  if (::bind(listening_, reinterpret_cast<const sockaddr*>(&here), size) != 0 ||
      ::listen(listening_, 8) != 0 ||
      ::getsockname(listening_, reinterpret_cast<sockaddr*>(&here), &size) != 0) {
    ::close(listening_);
    throw std::runtime_error("a relay cannot listen");
  }
  port_ = ntohs(here.sin_port);
  accepting_ = std::thread([this] { accept_callers(); });
}

TcpRelay::~TcpRelay() {
  ::shutdown(listening_, SHUT_RDWR);  // ends accept()
  accepting_.join();
  cut();
  for (Connection& connection : all_) {
    connection.there.join();
    connection.back.join();
    ::close(connection.caller);
    ::close(connection.called);
  }
  ::close(listening_);
}

void TcpRelay::accept_callers() {
  while (true) {
    const int caller = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) {
      return;
    }
    const int called = new_socket();
    const sockaddr_in there = loopback(to_);
    if (::connect(called, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) {
      ::close(caller);
      ::close(called);
      continue;
    }
    const std::scoped_lock lock(mutex_);
    Connection& connection = all_.emplace_back();
    connection.caller = caller;
    connection.called = called;
    connection.there = std::thread([this, caller, called] { carry(caller, called, holds_there_); });
    connection.back = std::thread([this, caller, called] { carry(called, caller, holds_back_); });
    ++connections_;
  }
}

void TcpRelay::carry(int from, int to, const bool& holds) {
  std::array<char, 16'384> bytes{};
  while (true) {
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    {
      std::unique_lock lock(mutex_);
      is_holding_bytes_ = is_holding_bytes_ || (holds && got > 0);
      changed_.wait(lock, [&] { return !holds; });
    }
    ssize_t sent = 0;
    while (got > 0 && sent < got) {
      const ssize_t taken =
          ::send(to, bytes.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (taken < 0) {
        break;
      }
      sent += taken;
    }
    if (got <= 0 || sent < got) {
      ::shutdown(from, SHUT_RDWR);
      ::shutdown(to, SHUT_RDWR);
      return;
    }
  }
}

void TcpRelay::cut() {
  const std::scoped_lock lock(mutex_);
  for (const Connection& connection : all_) {
    ::shutdown(connection.caller, SHUT_RDWR);
    ::shutdown(connection.called, SHUT_RDWR);
  }
  holds_there_ = holds_back_ = is_holding_bytes_ = false;  // what was held finds its way closed
  changed_.notify_all();
}

void TcpRelay::hold() {
  const std::scoped_lock lock(mutex_);
  holds_there_ = holds_back_ = true;
}

void TcpRelay::hold_callers() {
  const std::scoped_lock lock(mutex_);
  holds_there_ = true;
}

}  // namespace stagecraft::tests
