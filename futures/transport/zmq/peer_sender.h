/// PeerSender sends tensors to one peer, in chunks.
///
///   send() -> Outbox -> the socket takes chunks          on the thread that sends
///                   `-> the socket is full: chunks wait  the loop sends them later
///
/// With a process of this host, memory is shared (PeerMemory): a large tensor goes into a slot, and
/// frames into a ring. A frame without room there goes through the socket. Both ways have one
/// order, that of the frames' numbers.
/// Sending at once saves a change of threads for every small tensor. The mutex guards everything
/// here, because ZeroMQ's sockets may change threads, with a fence. No tensor is destroyed under
/// it. While chunks wait, only the loop sends (LP-1).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/port_address.h"
#include "stagecraft/futures/transport/route.h"
#include "stagecraft/futures/transport/shared_memory/peer_memory.h"
#include "stagecraft/futures/transport/zmq/frames/outbox.h"
#include "stagecraft/futures/transport/zmq/peer_watch.h"
#include "stagecraft/futures/transport/zmq/port_counts.h"
#include "stagecraft/futures/transport/zmq/port_options.h"

namespace zmq {
class socket_t;
}  // namespace zmq

namespace stagecraft {

class PortSockets;

class PeerSender {
 public:
  /// `link`: the number of the connection, which its frames carry. The other arguments must outlive
  /// this object.
  PeerSender(const PortAddress& peer,
             std::uint64_t link,
             const DataPortOptions& options,
             PortSockets& sockets,
             PortCounter& counter,
             const LentMemory& lent);
  PeerSender(const PeerSender&) = delete;
  PeerSender(PeerSender&&) = delete;
  PeerSender& operator=(const PeerSender&) = delete;
  PeerSender& operator=(PeerSender&&) = delete;
  ~PeerSender();

  /// Sends a tensor, after those that wait. Its slot, if any, is a range of `lent`. Returns whether
  /// it left chunks for the loop; then the caller must tell the loop (LP-1), or take_back(). Drops
  /// and counts the tensor after give_up(). Any thread may call it.
  /// Errors: TransportRefused if no connection can be started; bad_alloc. After an error the tensor
  /// may go with the next one.
  [[nodiscard]] bool send(Outgoing outgoing);
  /// Notes that the loop could not be told: the next send() does what the loop was to do.
  void take_back();

  /// Stops sending. Returns the waiting tensors, so that the caller drops them outside of all
  /// locks. Any thread may call it.
  [[nodiscard]] Outbox give_up();

  /// Returns how tensors get to the peer now. Any thread may call it.
  [[nodiscard]] Route route() const;

  // The functions below belong to the thread of the loop.

  /// Sends some of the waiting chunks. Returns whether none is left.
  [[nodiscard]] bool send_waiting();
  /// Returns the socket if it is full, so that chunks wait for it; else null.
  [[nodiscard]] zmq::socket_t* full_socket() const { return is_full_ ? socket_.get() : nullptr; }
  /// Records that the socket accepts messages again.
  void set_ready() { is_full_ = false; }
  /// Returns why the peer is out of reach, at the first look that detects it (PeerWatch).
  [[nodiscard]] std::optional<std::string> look(std::chrono::steady_clock::time_point now);

 private:
  /// Spent holds tensors that have been sent. The caller destroys them outside of all locks.
  using Spent = std::vector<at::Tensor>;

  // The functions below require that the caller holds the mutex.
  void connect();
  [[nodiscard]] bool send_chunks(Spent& spent);
  enum class Way { Memory, Socket, Full };
  /// Sends a frame and returns how it went; Full: it did not, because the socket is full.
  [[nodiscard]] Way send_frame(const FrameHeader& header, const at::Tensor& tensor);

  const PortAddress peer_;
  const std::uint64_t link_;
  const DataPortOptions& options_;
  PortSockets& sockets_;
  PortCounter& counter_;
  PeerMemory memory_;

  mutable std::mutex mutex_;
  std::unique_ptr<zmq::socket_t> socket_;  ///< made with the first tensor (DP-5)
  std::uint64_t sequence_ = 0;             ///< of the next frame
  Outbox outbox_;
  bool loop_sends_ = false;           ///< chunks wait, and the loop knows or is being told
  bool is_full_ = false;              ///< the socket accepts no more for now
  bool gone_ = false;                 ///< nothing is sent any more
  std::unique_ptr<PeerWatch> watch_;  ///< made with the socket; then belongs to the loop
};

}  // namespace stagecraft
