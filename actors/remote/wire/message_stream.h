/// MessageStream carries messages between the driver and one rank, in both directions, each in the
/// order in which it was sent.
///
/// The transport orders tensors of equal tags only, so each message has the tag of its number.
/// MG-1: `take` gets every message once, in order, one at a time. A message goes to it on the
///       thread that completes it (F-4).
/// MG-2: no lock is held while a message is sent or taken, because in one process both are one call
///       chain: sending to an end may run its `take`, which may send.
/// MG-3: after the transport's close, the end of the generation, a message that cannot be read or a
///       StreamNotice with an error, `end` gets the error, once, and no message follows.
/// MG-4: a message that cannot be sent leaves no gap: a StreamNotice takes its place.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "stagecraft/actors/remote/wire/message.h"
#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class MessageStream : public std::enable_shared_from_this<MessageStream> {
 public:
  using Take = std::function<void(RemoteMessage)>;
  using End = std::function<void(const Error&)>;

  /// `rank`: whose side it is about, here or at the other end. `generation`: tells the sides that a
  /// rank had one after the other apart.
  MessageStream(std::shared_ptr<Transport> end, Rank rank, Epoch generation);

  /// Begins to take messages. The transport keeps the stream until it closes.
  void listen(Take take, End at_end);

  /// Errors: those of Transport::send.
  void send(const RemoteMessage& message);

 private:
  void pump();
  /// Returns whether it may go on.
  bool take(const Future<Payload>& arrived);

  const std::shared_ptr<Transport> end_;
  const Rank rank_;
  const Rank peer_;
  const Epoch generation_;
  std::atomic<std::int64_t> sent_ = 0;
  std::int64_t taken_ = 0;
  std::atomic<int> turn_ = 0;
  Take take_;
  End at_end_;
};

}  // namespace stagecraft
