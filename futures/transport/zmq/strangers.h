/// Strangers tracks the connections to a data port that have not finished their handshake. The loop
/// of a DataPort owns it, and the loop's thread runs all of it.
///
///   accepted -> stranger -> handshake done, the port sent its last message of it: no stranger
///                    `-> gone: it ended, its time was over, or it was the oldest of too many
///
/// ZeroMQ accepts every connection and reads one message of each before it knows the sender. So any
/// client that reaches the port could fill the memory: with many connections, and on each a large
/// message that never ends. But a message has at most the size of a chunk, and there are at most
/// kMostStrangers strangers. So together they hold at most kMostStrangers chunks.
///
/// STR-1: the oldest stranger is ended when there are too many, so strangers that stay keep no
///        member out. A member whose connection was ended reconnects by itself, and has sent
///        nothing yet.
/// STR-2: only sockets that the port accepted are ended, although ZeroMQ closes them on a thread of
///        its own and reuses their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace stagecraft {

inline constexpr std::size_t kMostStrangers = 256;

class Strangers {
 public:
  /// Watches `socket`, which is not bound yet and outlives this object. ZeroMQ owns context and
  /// socket; `name` is unique in the context.
  Strangers(void* context, void* socket, const std::string& name);
  ~Strangers();
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  /// Returns a ZeroMQ socket that is readable when there are events.
  [[nodiscard]] void* events() const { return events_; }

  /// Processes the events and ends the oldest strangers beyond kMostStrangers. Returns how many it
  /// has ended.
  [[nodiscard]] int look();

 private:
  struct Stranger {
    int descriptor = -1;
    std::uint64_t cookie = 0;  ///< the kernel's id of the socket, which is never reused
  };

  void take_events();

  void* const socket_;
  void* const events_;
  std::list<Stranger> all_;  ///< oldest first
};

}  // namespace stagecraft
