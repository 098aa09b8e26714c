/// Receiver takes the messages that peers send to a data port and delivers the tensors in them.
///
///   message of a socket -> its sender's key -> Peer -> frame -> Reassembly or SlotView -> tensor
///   message of a peer's ring ----------------^                                   -> Mailbox
///
/// The frames of a peer have one order, whichever way they come. A ring's frame waits for earlier
/// ones of the socket. A ring's earlier frames are always written before a socket's frame is sent.
/// A frame that cannot be read breaks the link of its sender and nothing else (DP-2). A PortLoop
/// owns the receiver, and its thread runs all of it. No tensor is delivered or destroyed under a
/// lock.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/zmq/port_counts.h"
#include "stagecraft/futures/transport/zmq/port_options.h"
#include "stagecraft/futures/transport/zmq/sockets.h"

namespace stagecraft {

class ArenaDoor;
class AttachedNetworks;
class Peers;
struct FrameHeader;
struct Peer;

class Receiver {
 public:
  /// The arguments must outlive this object.
  Receiver(const DataPortOptions& options,
           PortSockets& sockets,
           const Peers& peers,
           const AttachedNetworks& networks,
           ArenaDoor& door,
           PortCounter& counter)
      : options_(options),
        sockets_(sockets),
        peers_(peers),
        networks_(networks),
        door_(door),
        counter_(counter) {}

  /// Takes some messages. Returns whether there may be more.
  [[nodiscard]] bool take_messages();

  /// Makes peers ring when they write to their rings, until wake_up(). Returns false if one has
  /// written something since take_messages().
  [[nodiscard]] bool fall_asleep();
  /// Adds the bells of peers with rings.
  void list_bells(std::vector<PortSockets::Readable>& all) const;
  /// `bells`: those of list_bells(), with those set that have rung.
  void wake_up(std::span<const PortSockets::Readable> bells);

  /// Releases the memory of partly received tensors that the mailboxes no longer accept.
  void tidy();

  /// Drops the tensors of a forgotten peer that have arrived in part.
  void forget(Peer& peer);

  /// Lets go of all peers.
  void close() { with_rings_.clear(); }

 private:
  struct Message;

  [[nodiscard]] bool take_from_socket();
  [[nodiscard]] bool take_from_rings();
  void take(const Message& message);
  [[nodiscard]] static FrameHeader header_of(const Message& message);
  [[nodiscard]] bool take_from_ring(Peer& peer);
  void take_frame(Peer& peer, const FrameHeader& header, std::string_view bytes);
  [[nodiscard]] std::optional<at::Tensor> take_in_slot(Peer& peer,
                                                       const FrameHeader& header,
                                                       bool wanted);
  void break_link(Peer& peer, const std::exception& why, bool was_broken);
  void count_partial(Peer& peer);
  void count_refused(const std::string& key, std::string_view why);
  void count_misdirected(const std::string& key, const FrameHeader& header);

  const DataPortOptions& options_;
  PortSockets& sockets_;
  const Peers& peers_;
  const AttachedNetworks& networks_;
  ArenaDoor& door_;
  PortCounter& counter_;
  std::vector<std::shared_ptr<Peer>> with_rings_;
};

}  // namespace stagecraft
