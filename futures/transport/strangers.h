/// Strangers: the connections to a data port that have not finished their handshake. Owned by the
/// loop of a DataPort, on whose thread all of it runs.
///
///   accepted -> stranger -> handshake done, the port's last word of it was sent: no stranger
///                    `-> gone: it ended, its time was over, or it was the oldest of too many
///
/// ZeroMQ takes every connection and reads one message of each before it knows the sender. Anybody
/// who reaches the port could so fill the memory: with many connections, each with a large message
/// that it never ends. A message has at most the size of a chunk, and strangers are at most
/// kMostStrangers, so all of them hold kMostStrangers chunks at most.
///
/// STR-1: the oldest stranger goes when another one comes, so that strangers who stay keep no
///        member out. A member that goes comes again by itself, and has sent nothing yet.
/// STR-2: only sockets that the port accepted are ended, though ZeroMQ closes them on a thread of
///        its own and their numbers come again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace stagecraft {

inline constexpr std::size_t kMostStrangers = 256;

class Strangers {
 public:
  /// Watches `socket`, which is not bound yet and outlives this. Context and socket are ZeroMQ's;
  /// `name` is unique in the context.
  Strangers(void* context, void* socket, const std::string& name);
  ~Strangers();
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  /// A socket of ZeroMQ that can be read when there is something to look at.
  [[nodiscard]] void* events() const { return events_; }

  /// Takes in what has happened, and ends the oldest strangers beyond kMostStrangers. Returns how
  /// many it has ended.
  [[nodiscard]] int look();

 private:
  struct Stranger {
    int descriptor = -1;
    std::uint64_t cookie = 0;  ///< the kernel's name of the socket, which never comes again
  };

  void take_events();

  void* const socket_;
  void* const events_;
  std::list<Stranger> all_;  ///< the oldest first
};

}  // namespace stagecraft
