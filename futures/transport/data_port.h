/// DataPort: one process's place on the data plane between processes: tensors leave it for other
/// ports and come in to the mailboxes of the networks that it was told of.
///
/// One per process and cluster, shared by all crews of the process; RoutedNetwork is its user. It
/// speaks ZeroMQ with CURVE over TCP or a local socket. One progress thread does the work on all
/// sockets, ZeroMQ's I/O threads encrypt. Every method may be called from any thread, and none
/// waits for a peer; the key pair is new with every port, so a key names an incarnation.
///
/// DP-1: only keys that were admitted can connect, and what comes is known by that key; garbage,
///       plain clients and foreign keys never reach a frame. A handshake with a key that is not
///       admitted waits for it for some seconds, as the other end may have been told first.
/// DP-2: what came from one port counts its frames; after a loss, or a frame that cannot be read,
///       nothing more is taken from that link (RS-1), and `when_broken` is told. A tensor is
///       delivered whole or not at all.
/// DP-3: a peer that does not read, or is not there, holds back what is for it and nothing else.
///       That waits until it is forgotten or the port closes.
/// DP-4: close does not linger: what has not left is dropped. So whoever ends a process first makes
///       sure, by an answer, that what it sent was received.
/// DP-5: a peer is connected to when something is first sent to it, and so ports are joined only
///       where tensors go, however many were admitted.
/// DP-6: where a `silence` is given, a peer that does not get what is sent to it, though it may be
///       there, is told of (PeerWatch): its connection has ended, or nothing got through for so
///       long.
/// DP-7: memory that others can take without an admitted key is bounded: a message is at most a
///       chunk long, and of connections without a handshake the oldest are ended (Strangers). A
///       local socket takes connections of its own user alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/home_process.h"
#include "stagecraft/futures/transport/frame.h"
#include "stagecraft/futures/transport/mailboxes.h"
#include "stagecraft/futures/transport/port_address.h"

namespace stagecraft {

struct Outgoing;
class PortLoop;

struct DataPortOptions {
  /// "tcp://ADDRESS:*" or ":PORT"; "ipc://*" for a name that no other port of the host has and that
  /// leaves no file.
  std::string bind = "tcp://127.0.0.1:*";
  std::int64_t largest_tensor = std::int64_t{1} << 36U;  ///< bytes; a larger one is refused
  std::int64_t chunk_bytes = kLargestChunk;              ///< at most kLargestChunk
  int io_threads = 1;                                    ///< of ZeroMQ: they encrypt
  /// A link broke (DP-2): told once, with the peer's key, on the progress thread. Must not block.
  std::function<void(const std::string& key, const Error& why)> when_broken;
  /// How long nothing may get through to a peer before it is out of reach (DP-6); 0: for ever.
  std::chrono::milliseconds silence{0};
  /// A peer is out of reach: told once, likewise.
  std::function<void(const std::string& key, const Error& why)> when_cut;
};

/// What went to and came from one peer, by its key.
struct LinkCounts {
  std::int64_t tensors_sent = 0;
  std::int64_t bytes_sent = 0;  ///< of tensors, chunk by chunk
  std::int64_t tensors_received = 0;
  std::int64_t bytes_received = 0;
  std::int64_t tensors_dropped =
      0;                            ///< waited for a peer that was forgotten, or was never admitted
  std::int64_t frames_refused = 0;  ///< malformed, of a broken link, or of a key no longer admitted
};

struct PortCounts {
  std::map<std::string, LinkCounts> links;  ///< of all peers there ever were
  std::int64_t connections_held = 0;        ///< handshakes with keys that were not admitted
  std::int64_t strangers_ended = 0;         ///< connections whose handshake took too long (DP-7)
  std::int64_t tensors_misdirected = 0;     ///< for a network or a rank that is not here
  std::int64_t partial_bytes = 0;           ///< memory of tensors of which a part is here
};

class DataPort {
 public:
  /// Errors: UsageArgument for options that make no sense; TransportRefused where the address
  ///         cannot be bound.
  [[nodiscard]] static std::shared_ptr<DataPort> open(DataPortOptions options = {});

  DataPort(const DataPort&) = delete;
  DataPort(DataPort&&) = delete;
  DataPort& operator=(const DataPort&) = delete;
  DataPort& operator=(DataPort&&) = delete;
  /// Closes. Where the process ends, or in a child of fork(), it leaves everything as it is.
  ~DataPort();

  [[nodiscard]] const PortAddress& address() const;

  /// The peer may connect from now on, and be sent to. A second time changes nothing.
  /// Errors: TransportRefused for an address or a key that is none.
  void admit(const PortAddress& peer);
  /// The opposite: its key is refused, its tensors that are half here and those that wait for it
  /// are dropped.
  void forget(const PortAddress& peer);

  /// Hands a tensor over for `to`, a rank in the process of `peer`; dropped and counted when the
  /// peer is not admitted. Order: T-1.
  /// Errors: TransportRefused for a tensor that no frame can hold, and where no connection can be
  ///         begun: for want of open files, or to an address that is none after all.
  void send(const PortAddress& peer,
            NetworkId network,
            Rank from,
            Rank to,
            const Tag& tag,
            at::Tensor tensor);

  /// What comes for this network goes into these mailboxes, as long as they live.
  /// Errors: UsageArgument when the port has a network of that id.
  void attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes);
  void detach(NetworkId network);
  /// Mailboxes refuse more than before: gives back the memory of what is half here for them.
  void tidy();

  [[nodiscard]] PortCounts counts() const;

  /// Ends the sockets and the thread, and waits for that unless it is this thread; later sends are
  /// dropped. A second close changes nothing.
  void close();

 private:
  explicit DataPort(DataPortOptions options);

  HomeProcess home_;
  std::shared_ptr<PortLoop> loop_;
  std::mutex closing_;  ///< guards thread_, as any thread may close
  std::thread thread_;
};

}  // namespace stagecraft
