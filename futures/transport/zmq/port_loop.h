/// PortLoop is the inside of a DataPort: its sockets, and the progress thread's loop over them.
///
///   wait for orders or sockets -> carry out orders -> judge new connections -> take messages
///   -> send pieces
///
/// The thread of the loop handles all incoming messages. Outgoing messages leave on the sending
/// thread, which saves a change of threads for every small tensor; the loop sends the part that the
/// socket does not take at once. Each peer's mutex guards its sending half (ZeroMQ's sockets may
/// change threads, with a fence). The loop's mutex guards the data shared with other threads:
/// orders, peers, networks, counts. It is held for one lookup at a time. No tensor is delivered or
/// destroyed under either mutex.
/// LP-1: a peer whose outbox is not empty is busy, or an order that makes it busy is on its way.
///       Only the loop touches its socket until the outbox is empty.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stagecraft/futures/transport/zmq/data_port.h"
#include "stagecraft/futures/transport/zmq/frames/outbox.h"
#include "stagecraft/futures/transport/zmq/frames/reassembly.h"

namespace stagecraft {

class PortLoop {
 public:
  /// Binds the sockets; the loop does not run yet.
  explicit PortLoop(DataPortOptions options);
  PortLoop(const PortLoop&) = delete;
  PortLoop(PortLoop&&) = delete;
  PortLoop& operator=(const PortLoop&) = delete;
  PortLoop& operator=(PortLoop&&) = delete;
  ~PortLoop();

  /// Runs until stop(), then closes the sockets.
  void run() noexcept;

  [[nodiscard]] const PortAddress& address() const { return address_; }
  [[nodiscard]] const DataPortOptions& options() const { return options_; }

  // Called from any thread.
  void admit(const PortAddress& peer);
  void forget(const PortAddress& peer);
  void send(const std::string& key, Outgoing outgoing);
  void attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes);
  void detach(NetworkId network);
  void tidy();
  void stop();
  [[nodiscard]] PortCounts counts() const;

 private:
  struct Sockets;
  struct Peer;
  struct Order;
  struct Message;
  struct Knock;

  using Peers = std::unordered_map<std::string, std::shared_ptr<Peer>>;  ///< by key
  /// Tensors that have been sent, to be destroyed outside of all locks.
  using Spent = std::vector<at::Tensor>;

  void post(Order order);
  void wake();
  [[nodiscard]] std::shared_ptr<Peer> find_peer(const std::string& key) const;
  [[nodiscard]] std::vector<std::shared_ptr<Peer>> all_peers() const;
  [[nodiscard]] Outbox give_up(Peer& peer);
  void connect(Peer& peer);
  /// Sends some of the peer's waiting pieces; returns whether none is left. Needs the peer's mutex.
  [[nodiscard]] bool send_pieces_to(Peer& peer, Spent& spent);
  template <class Change>
  void count(const std::string& key, Change change);

  // The functions below belong to the thread of the loop.
  void turns();
  void wait(bool more);
  [[nodiscard]] bool carry_out_orders();
  void carry_out(Order& order);
  [[nodiscard]] std::chrono::milliseconds look_interval() const;
  void look_after_peers();
  void end_strangers();
  void judge_connections();
  void let_in(const Knock& knock);
  /// Each returns whether there is more to do at once.
  [[nodiscard]] bool take_messages();
  [[nodiscard]] bool send_pieces();
  void take(Message& message);
  void take_from(Peer& peer, Message& message);
  void count_partial(Peer& peer);
  void tell_refused(const std::string& key, std::string_view why);
  [[nodiscard]] std::shared_ptr<const Mailboxes> mailboxes_of(NetworkId network) const;

  const DataPortOptions options_;
  PortAddress address_;
  std::string secret_key_;
  std::unique_ptr<Sockets> sockets_;
  std::vector<std::shared_ptr<Peer>> busy_;  ///< have something to send
  std::deque<Knock> knocks_;
  std::chrono::steady_clock::time_point look_at_{};  ///< time of the next look after peers

  mutable std::mutex mutex_;
  std::vector<Order> orders_;
  bool asleep_ = false;
  bool stopped_ = false;
  Peers peers_;  ///< admitted peers
  std::uint64_t links_ = 0;
  std::unordered_map<NetworkId, std::weak_ptr<const Mailboxes>> networks_;
  PortCounts counts_;
};

}  // namespace stagecraft
