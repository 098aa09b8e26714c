/// PortLoop is the implementation of a DataPort: the loop of its progress thread, and the loop's
/// parts.
///
///   wait for orders or sockets -> carry out orders -> look after peers, end strangers
///   -> take offered memory (ArenaDoor) -> judge identities (IdentityJudge)
///   -> take messages of sockets and rings (Receiver) -> send chunks (PeerSender)
///
/// The thread of the loop handles all incoming messages. Outgoing messages leave on the thread that
/// sends them; the loop sends the chunks that a socket does not take at once. The mutex guards the
/// orders of other threads. Peers, networks and counts each guard themselves. No tensor is
/// delivered or destroyed under any of these mutexes.
/// LP-1: a peer whose outbox is not empty is busy, or an order that makes it busy is on its way, or
///       a send has just failed: then the next one continues.
///       Only the loop touches its socket until the outbox is empty.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/futures/transport/shared_memory/arena_door.h"
#include "stagecraft/futures/transport/shared_memory/lent_memory.h"
#include "stagecraft/futures/transport/zmq/attached_networks.h"
#include "stagecraft/futures/transport/zmq/identity_judge.h"
#include "stagecraft/futures/transport/zmq/peers.h"
#include "stagecraft/futures/transport/zmq/port_counts.h"
#include "stagecraft/futures/transport/zmq/port_options.h"
#include "stagecraft/futures/transport/zmq/receiver.h"
#include "stagecraft/futures/transport/zmq/sockets.h"

namespace stagecraft {

class PortLoop {
 public:
  /// Binds the sockets; the loop does not run yet.
  explicit PortLoop(DataPortOptions options);

  /// Runs until stop(), then closes the sockets.
  void run() noexcept;

  [[nodiscard]] const PortAddress& address() const { return sockets_.address(); }
  [[nodiscard]] const DataPortOptions& options() const { return options_; }

  // Called from any thread.
  void admit(const PortAddress& peer);
  void forget(const PortAddress& peer);
  void send(const std::string& key, Outgoing outgoing);
  [[nodiscard]] const LentMemory& lent() const { return lent_; }
  [[nodiscard]] Route route_to(const std::string& key) const;
  [[nodiscard]] AttachedNetworks& networks() { return networks_; }
  void tidy();
  void stop();
  [[nodiscard]] PortCounts counts() const { return counter_.counts(); }

 private:
  struct Admitted {
    std::string key;
  };
  struct Forgotten {
    std::shared_ptr<Peer> peer;
  };
  struct Busy {
    std::shared_ptr<Peer> peer;
  };
  struct Tidy {};
  using Order = std::variant<Admitted, Forgotten, Busy, Tidy>;

  void post(Order order);

  // The functions below belong to the thread of the loop.
  void turns();
  void wait(bool more);
  /// Returns false after stop().
  [[nodiscard]] bool carry_out_orders();
  void carry_out(const Admitted& order);
  void carry_out(const Forgotten& order);
  void carry_out(const Busy& order);
  void carry_out(const Tidy& order);
  [[nodiscard]] std::chrono::milliseconds look_interval() const;
  void look_after_peers();
  void end_strangers();
  /// Returns whether there is more to send at once.
  [[nodiscard]] bool send_chunks();
  void end();

  const DataPortOptions options_;
  PortCounter counter_;
  AttachedNetworks networks_;
  PortSockets sockets_;
  ArenaDoor door_;
  const LentMemory lent_;
  Peers peers_{options_, sockets_, counter_, lent_};
  IdentityJudge judge_{sockets_, peers_, counter_};
  Receiver receiver_{options_, sockets_, peers_, networks_, door_, counter_};
  std::vector<std::shared_ptr<Peer>> busy_;          ///< have something to send
  bool offered_ = false;                             ///< the door has something to read
  std::vector<PortSockets::Full> full_;              ///< kept to reuse its memory
  std::vector<PortSockets::Readable> readable_;      ///< the door's, then bells; kept likewise
  std::chrono::steady_clock::time_point look_at_{};  ///< time of the next look after peers

  std::mutex mutex_;
  std::vector<Order> orders_;
  bool asleep_ = false;
  bool stopped_ = false;
};

}  // namespace stagecraft
