#include "stagecraft/actors/remote/wire/message_stream.h"

#include <exception>
#include <utility>

#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/remote/wire/payload_transfer.h"
#include "stagecraft/actors/remote/wire/remote_tags.h"

namespace stagecraft {

MessageStream::MessageStream(std::shared_ptr<Transport> end, Rank rank, Epoch generation)
    : end_(std::move(end)),
      rank_(rank),
      peer_(end_->self() == kDriver ? rank : kDriver),
      generation_(generation) {}

void MessageStream::send(const RemoteMessage& message) {
  Payload payload = pack(message);
  const Tag tag = message_tag(rank_, generation_, sent_++);
  try {
    send_payload(*end_, peer_, tag, std::move(payload));
  } catch (const Error& error) {
    if (error.code() != Errc::TransportClosed) {
      send_payload(*end_, peer_, tag, pack(RemoteMessage(StreamNotice{})));  // keeps MG-4
    }
    throw;
  }
}

void MessageStream::listen(Take take, End at_end) {
  take_ = std::move(take);
  at_end_ = std::move(at_end);
  pump();
}

/// The loop takes messages that have already arrived. If the callback of each took the next one,
/// thousands of nested calls would use up the stack. Callback and loop both notice an arrival, and
/// the one that notices it second continues.
void MessageStream::pump() {
  while (true) {
    const Future<Payload> next =
        receive_payload(end_, peer_, message_tag(rank_, generation_, taken_));
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
    auto message = unpack<RemoteMessage>(arrived.get());
    if (const auto* notice = std::get_if<StreamNotice>(&message)) {
      if (!notice->why.empty()) {
        throw to_error(notice->why);
      }
      return true;
    }
    take_(std::move(message));
    return true;
  } catch (...) {
    const End at_end = std::exchange(at_end_, {});
    take_ = {};
    at_end(foreign_error(std::current_exception()));
    return false;
  }
}

}  // namespace stagecraft
