#include "stagecraft/actors/remote/wire/message_stream.h"

#include <utility>

#include "stagecraft/actors/remote/wire/payload_transfer.h"
#include "stagecraft/actors/remote/wire/remote_tags.h"

namespace stagecraft {
MessageStream::MessageStream(std::shared_ptr<Transport> end, Rank peer, Epoch generation)
    : end_(std::move(end)), peer_(peer), generation_(generation) {}

void MessageStream::send(const RemoteMessage& message) {
  send_payload(*end_, peer_, message_tag(generation_, sent_++), pack(message));
}

void MessageStream::listen(Take take, End at_end) {
  take_ = std::move(take);
  at_end_ = std::move(at_end);
  pump();
}

/// A message that has already arrived is taken here, in a loop: as a callback of its future it
/// would be taken within the callback of the one before it, and thousands would use up the stack.
/// Of the two that notice an arrival, callback and loop, the second goes on.
void MessageStream::pump() {
  while (true) {
    const Future<Payload> next = receive_payload(end_, peer_, message_tag(generation_, taken_));
    turn_ = 0;
    (void)next.on_ready([self = shared_from_this(), next] {
      if (++self->turn_ == 2 && self->take(next)) {
        self->pump();
      }
    });
    if (++turn_ != 2 || !take(next)) {
      return;
    }
  }
}

bool MessageStream::take(const Future<Payload>& arrived) {
  ++taken_;
  try {
    take_(unpack<RemoteMessage>(arrived.get()));
    return true;
  } catch (const Error& error) {
    const End at_end = std::exchange(at_end_, {});
    take_ = {};
    at_end(error);
    return false;
  }
}

}  // namespace stagecraft
