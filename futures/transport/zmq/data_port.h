/// DataPort is one process's end of the data plane between processes. It sends tensors to other
/// ports and delivers received ones to the mailboxes of the attached networks.
///
/// There is one per process and cluster, shared by all crews of the process; RoutedNetwork uses it.
/// It speaks ZeroMQ with CURVE over TCP or a local socket. One progress thread does the work on all
/// sockets; ZeroMQ's I/O threads encrypt. Every method may be called from any thread, and none
/// waits for a peer. Every port has a new key pair, so a key identifies an incarnation.
///
/// DP-1: only admitted keys can connect, and the key identifies the sender of a message. Garbage,
///       plain clients and foreign keys never reach a frame. A handshake with a key that is not
///       admitted waits some seconds for its admission, because the other end may have been
///       admitted first.
/// DP-2: frames from one port are counted. After a loss, or a frame that cannot be read, nothing
///       more is taken from that link (RS-1), and `when_broken` is called. A tensor is delivered
///       whole or not at all.
/// DP-3: a peer that does not read, or is not there, holds back only its own tensors. They wait
///       until the peer is forgotten or the port closes.
/// DP-4: close does not linger: it drops everything that has not left. So before the end of a
///       process, its owner must know by an answer that its messages were received.
/// DP-5: the port connects to a peer when it first sends something to it. So connections exist only
///       where tensors go, however many peers were admitted.
/// DP-6: with a `silence`, the port reports a peer that does not get its messages although it may
///       exist (PeerWatch): its connection has ended, or nothing has got through for that time.
/// DP-7: the memory that others can take without an admitted key is bounded. A message is at most a
///       chunk long, and of the connections without a handshake the oldest are ended (Strangers). A
///       local socket accepts only connections of its own user.
/// DP-8: with `shared_memory`, tensors for a port of the same host and user go through memory that
///       both share (PeerMemory): large ones in slots, frames and small ones in a ring. The order
///       is the same. What a rank receives may lie in that memory; what the driver receives is its
///       own.
/// DP-9: a tensor from a rank is delivered if the rank is placed in the process that sent it. No
///       peer can send in the name of a rank of another process.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/mailboxes.h"
#include "stagecraft/futures/transport/port_address.h"
#include "stagecraft/futures/transport/route.h"
#include "stagecraft/futures/transport/zmq/frames/frame.h"
#include "stagecraft/futures/transport/zmq/port_counts.h"
#include "stagecraft/futures/transport/zmq/port_options.h"

namespace stagecraft {

class DataPort {
 public:
  /// Errors: UsageArgument for invalid options; TransportRefused if the address cannot be bound.
  [[nodiscard]] static std::shared_ptr<DataPort> open(DataPortOptions options = {});

  DataPort(const DataPort&) = delete;
  DataPort(DataPort&&) = delete;
  DataPort& operator=(const DataPort&) = delete;
  DataPort& operator=(DataPort&&) = delete;
  /// Closes the port. At the end of the process, or in a child of fork(), it leaves everything as
  /// it is.
  virtual ~DataPort() = default;

  [[nodiscard]] virtual const PortAddress& address() const = 0;

  /// Allows the peer to connect, and allows sends to it. A second call changes nothing.
  /// Errors: TransportRefused for an invalid address or key.
  virtual void admit(const PortAddress& peer) = 0;
  /// Revokes the admission: refuses the peer's key, and drops the tensors that the peer has sent in
  /// part or that wait for it.
  virtual void forget(const PortAddress& peer) = 0;

  /// Hands a tensor over for `to`, a rank in the process of `peer`. Drops and counts it if the peer
  /// is not admitted. Keeps T-1. Errors: TransportRefused for a tensor that no frame can hold, and
  /// if no connection can be started because too few files may be open or the address is invalid.
  virtual void send(const PortAddress& peer,
                    NetworkId network,
                    Rank from,
                    Rank to,
                    const Tag& tag,
                    at::Tensor tensor) = 0;

  /// Works like send, for Transport::lend.
  virtual void lend(const PortAddress& peer,
                    NetworkId network,
                    Rank from,
                    Rank to,
                    const Tag& tag,
                    at::Tensor tensor) = 0;
  /// Works like Transport::lendable.
  [[nodiscard]] virtual at::Tensor lendable(std::int64_t elements, at::ScalarType dtype) = 0;

  /// Returns how tensors get to the peer.
  [[nodiscard]] virtual Route route_to(const PortAddress& peer) const = 0;

  /// Delivers tensors for this network to these mailboxes, as long as they live.
  /// Errors: UsageArgument if the port has a network of that id.
  virtual void attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes) = 0;
  virtual void detach(NetworkId network) = 0;
  /// Takes tensors of the rank from this peer, and from no other (DP-9). Requires: attach().
  virtual void place(NetworkId network, Rank rank, const PortAddress& peer) = 0;
  /// Releases the memory of partly received tensors that the mailboxes no longer accept.
  virtual void tidy() = 0;

  [[nodiscard]] virtual PortCounts counts() const = 0;

  /// Ends the sockets and the thread. Waits for that unless it runs on this thread. Later sends are
  /// dropped. A second close changes nothing.
  virtual void close() = 0;

 protected:
  DataPort() = default;
};

}  // namespace stagecraft
