#include "stagecraft/futures/transport/zmq/peer_watch.h"

#include <cstring>

#include <fmt/format.h>
#include <zmq.hpp>

namespace stagecraft {
namespace {

constexpr std::chrono::milliseconds kMoment{250};

void require(bool done) {
  if (!done) {
    throw zmq::error_t();
  }
}

}  // namespace

PeerWatch::PeerWatch(void* context,
                     void* socket,
                     std::uint64_t number,
                     std::chrono::milliseconds silence)
    : silence_(silence), socket_(socket), events_(zmq_socket(context, ZMQ_PAIR)) {
  require(events_ != nullptr);
  const int limit = static_cast<int>(silence.count()), none = 0;
  const std::string place = fmt::format("inproc://peer-watch-{}", number);
  // Limits the time for unacknowledged data, and the interval between connection attempts, which
  // otherwise grows.
  require(zmq_setsockopt(socket, ZMQ_TCP_MAXRT, &limit, sizeof limit) == 0 &&
          zmq_setsockopt(socket, ZMQ_CONNECT_TIMEOUT, &limit, sizeof limit) == 0 &&
          zmq_setsockopt(events_, ZMQ_LINGER, &none, sizeof none) == 0 &&
          zmq_socket_monitor(
              socket, place.c_str(), ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED) == 0 &&
          zmq_connect(events_, place.c_str()) == 0);
}

/// Stops the monitor first: otherwise ZeroMQ would wait for a reader of its events, on the thread
/// that serves all connections.
PeerWatch::~PeerWatch() {
  zmq_socket_monitor(socket_, nullptr, 0);
  zmq_close(events_);
}

std::optional<std::string> PeerWatch::look(Time now, bool used) {
  take_events(now, used);
  const bool late = without_ && now - *without_ >= silence_;
  const bool cut = cut_ && now - *cut_ >= kMoment;  // keeps PWT-3
  if (!used || reported_ || (!cut && !late)) {      // keeps PWT-1 and PWT-2
    return std::nullopt;
  }
  reported_ = true;
  return cut ? fmt::format("the connection was reset, or sent data was not acknowledged for {} ms",
                           silence_.count())
             : fmt::format("there has been no connection for {} ms", silence_.count());
}

/// Each event has two parts: the event, and the place.
void PeerWatch::take_events(Time now, bool used) {
  zmq::message_t part;
  while (zmq_msg_recv(part.handle(), events_, ZMQ_DONTWAIT) >= 0) {
    std::uint16_t event = 0;
    std::memcpy(&event, part.data(), sizeof event);
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      without_.reset();
    } else if (!without_) {  // otherwise only an attempt has failed
      without_ = now;
      if (used && !cut_) {
        cut_ = now;
      }
    }
    static_cast<void>(zmq_msg_recv(part.handle(), events_, 0));
  }
}

}  // namespace stagecraft
