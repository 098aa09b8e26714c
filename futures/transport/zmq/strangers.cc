#include "stagecraft/futures/transport/zmq/strangers.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <zmq.hpp>

namespace stagecraft {
namespace {

/// The bytes that the port sends to every client: a greeting of 64 bytes, and CURVE's WELCOME of
/// 168 with 2 before it. READY comes next and completes the handshake.
constexpr std::uint64_t kBytesToStrangers = 64 + 2 + 168;

void require_stranger_events(bool done) {
  if (!done) {
    throw zmq::error_t();
  }
}

std::optional<std::uint64_t> cookie_of(int descriptor) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? std::optional(cookie)
                                                                            : std::nullopt;
}

bool has_shaken_hands(int descriptor) {
  struct tcp_info info {};
  socklen_t size = sizeof info;
  return getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_bytes_sent - info.tcpi_bytes_retrans > kBytesToStrangers;
}

}  // namespace

Strangers::Strangers(void* context, void* socket, const std::string& name)
    : socket_(socket), events_(zmq_socket(context, ZMQ_PAIR)) {
  require_stranger_events(events_ != nullptr);
  const int none = 0;
  const std::string place = fmt::format("inproc://{}", name);
  require_stranger_events(
      zmq_setsockopt(events_, ZMQ_LINGER, &none, sizeof none) == 0 &&
      zmq_socket_monitor(socket, place.c_str(), ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) == 0 &&
      zmq_connect(events_, place.c_str()) == 0);
}

/// Stops the monitor first, as in PeerWatch.
Strangers::~Strangers() {
  zmq_socket_monitor(socket_, nullptr, 0);
  zmq_close(events_);
}

int Strangers::look() {
  take_events();
  if (all_.size() <= kMostStrangers) {
    return 0;
  }
  std::erase_if(all_, [](const Stranger& s) {
    return cookie_of(s.descriptor) != s.cookie || has_shaken_hands(s.descriptor);
  });
  int ended = 0;
  for (; all_.size() > kMostStrangers; all_.pop_front()) {
    // Keeps STR-2: the copy refers to one socket while it is examined.
    const int copy = fcntl(all_.front().descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
      continue;
    }
    if (cookie_of(copy) == all_.front().cookie && !has_shaken_hands(copy)) {
      static_cast<void>(shutdown(copy, SHUT_RDWR));
      ++ended;
    }
    close(copy);
  }
  return ended;
}

/// Each event has two parts: the event with the socket's number, and the place. A number is reused
/// only after ZeroMQ has reported its end, which is then among these events.
void Strangers::take_events() {
  zmq::message_t part;
  while (zmq_msg_recv(part.handle(), events_, ZMQ_DONTWAIT) >= 0) {
    std::uint16_t event = 0;
    std::int32_t descriptor = -1;
    std::memcpy(&event, part.data(), sizeof event);
    std::memcpy(&descriptor, part.data<char>() + sizeof event, sizeof descriptor);
    static_cast<void>(zmq_msg_recv(part.handle(), events_, 0));
    std::erase_if(all_, [descriptor](const Stranger& s) { return s.descriptor == descriptor; });
    if (event == ZMQ_EVENT_ACCEPTED) {
      if (const auto cookie = cookie_of(descriptor)) {
        all_.push_back({descriptor, *cookie});
      }
    }
  }
}

}  // namespace stagecraft
