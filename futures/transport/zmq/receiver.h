/// Receiver takes the messages that peers send to a data port and delivers the tensors in them.
///
///   message -> its sender's key -> Peer -> frame -> Reassembly or SlotView -> tensor -> Mailbox
///
/// A frame that cannot be read breaks the link of its sender and nothing else (DP-2). A PortLoop
/// owns the receiver, and its thread runs all of it. No tensor is delivered or destroyed under a
/// lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/zmq/port_counts.h"
#include "stagecraft/futures/transport/zmq/port_options.h"

namespace stagecraft {

class ArenaDoor;
class AttachedNetworks;
class Peers;
class PortSockets;
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

  /// Releases the memory of partly received tensors that the mailboxes no longer accept.
  void tidy();

  /// Drops the tensors of a forgotten peer that have arrived in part.
  void forget(Peer& peer);

 private:
  struct Message;

  void take(const Message& message);
  void take_from(Peer& peer, const Message& message);
  [[nodiscard]] std::optional<at::Tensor> take_in_slot(Peer& peer,
                                                       const FrameHeader& header,
                                                       bool wanted);
  void count_partial(Peer& peer);
  void count_refused(const std::string& key, std::string_view why);
  void count_misdirected(const std::string& key, const FrameHeader& header);

  const DataPortOptions& options_;
  PortSockets& sockets_;
  const Peers& peers_;
  const AttachedNetworks& networks_;
  ArenaDoor& door_;
  PortCounter& counter_;
};

}  // namespace stagecraft
