#include "stagecraft/futures/transport/zmq/peer_sender.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include <zmq.hpp>

#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/transport/zmq/sockets.h"

namespace stagecraft {

namespace {

/// Up to this size, a copy is cheaper than keeping the tensor until it has left.
constexpr std::size_t kCopied = 4096;

/// A tensor whose bytes a message refers to. The sending thread makes it; a thread of ZeroMQ
/// releases it.
struct Lent {
  at::Tensor tensor;
  std::atomic<bool> given{false};  ///< orders the two threads for race detectors too
};

void let_go(void* /*data*/, void* hint) {
  const process_end::AtWork at_work;
  auto* const lent = static_cast<Lent*>(hint);
  static_cast<void>(lent->given.load(std::memory_order_acquire));
  delete lent;
}

/// Returns the bytes of the frame; none if they lie in a slot.
std::string_view bytes_of(const FrameHeader& header, const at::Tensor& tensor) {
  if (header.slot || header.chunk == 0) {
    return {};
  }
  return {static_cast<const char*>(tensor.const_data_ptr()) + header.offset,
          static_cast<std::size_t>(header.chunk)};
}

/// Returns a message of these bytes of the tensor: copied if they are few, else lent.
zmq::message_t message_of(std::string_view bytes, const at::Tensor& tensor) {
  if (bytes.size() <= kCopied) {
    return {bytes.data(), bytes.size()};
  }
  auto* const lent = new Lent{tensor, {}};
  lent->given.store(true, std::memory_order_release);
  return {const_cast<char*>(bytes.data()), bytes.size(), let_go, lent};  // ZeroMQ only reads it
}

}  // namespace

PeerSender::PeerSender(const PortAddress& peer,
                       std::uint64_t link,
                       const DataPortOptions& options,
                       PortSockets& sockets,
                       PortCounter& counter,
                       const LentMemory& lent)
    : peer_(peer),
      link_(link),
      options_(options),
      sockets_(sockets),
      counter_(counter),
      memory_(peer.key, options.shared_memory, lent),
      outbox_(options.chunk_bytes) {}

PeerSender::~PeerSender() = default;

void PeerSender::connect() {
  try {
    auto socket = sockets_.new_connection(peer_);
    std::unique_ptr<PeerWatch> watch;
    if (options_.silence.count() > 0) {
      watch = std::make_unique<PeerWatch>(
          sockets_.context(), socket->handle(), link_, options_.silence);
    }
    socket->connect(peer_.endpoint);
    socket_ = std::move(socket);
    watch_ = std::move(watch);
  } catch (const zmq::error_t& error) {
    throw cannot_connect(
        peer_.endpoint,
        error.what(),
        error.num() == EMFILE ? "raise the limit of open files (ulimit -n)" : kNameAnAddress);
  }
}

bool PeerSender::send(Outgoing outgoing) {
  if (outgoing.slot) {
    outgoing.slot = memory_.lend(*outgoing.slot);
  }
  if (!outgoing.slot) {
    if (std::optional<SlotArena::InSlot> shared = memory_.put(outgoing.tensor)) {
      outgoing.tensor = std::move(shared->tensor);
      outgoing.slot = shared->slot;
    }
  }
  Spent spent;
  {
    const std::scoped_lock lock(mutex_);
    if (!gone_) {
      if (socket_ == nullptr) {
        connect();
      }
      outbox_.push(std::move(outgoing));
      if (loop_sends_) {
        return false;
      }
      loop_sends_ = !send_chunks(spent);  // if it throws, the next tensor takes the others along
      return loop_sends_;
    }
  }
  counter_.change_link(peer_.key, [](LinkCounts& link) { ++link.tensors_dropped; });
  return false;
}

Outbox PeerSender::give_up() {
  const std::scoped_lock lock(mutex_);
  gone_ = true;
  return std::exchange(outbox_, Outbox(options_.chunk_bytes));
}

Route PeerSender::route() const {
  const std::scoped_lock lock(mutex_);
  return sequence_ == 0 ? Route::Unused : memory_.is_open() ? Route::SharedMemory : Route::Socket;
}

void PeerSender::take_back() {
  const std::scoped_lock lock(mutex_);
  loop_sends_ = false;
}

bool PeerSender::send_waiting() {
  Spent spent;
  const std::scoped_lock lock(mutex_);
  loop_sends_ = !send_chunks(spent);
  return !loop_sends_;
}

bool PeerSender::send_chunks(Spent& spent) {
  for (int i = 0; i < kTurn && !is_full_ && !outbox_.empty(); ++i) {
    auto [header, tensor] = outbox_.next();
    header.link = link_;
    header.sequence = sequence_;
    const Way way = send_frame(header, tensor);
    if (way == Way::Full) {
      is_full_ = true;
      return false;
    }
    ++sequence_;
    outbox_.sent();  // before anything that needs memory: no frame is sent twice
    const bool last = header.offset + header.chunk == header.total;
    if (last) {
      spent.push_back(std::move(tensor));
    }
    const std::int64_t bytes = header.chunk, shared = header.slot || way == Way::Memory ? bytes : 0;
    counter_.change_link(peer_.key, [last, bytes, shared](LinkCounts& link) {
      link.bytes_sent += bytes;
      link.bytes_shared += shared;
      link.tensors_sent += last ? 1 : 0;
    });
  }
  return outbox_.empty();
}

PeerSender::Way PeerSender::send_frame(const FrameHeader& header, const at::Tensor& tensor) {
  const std::string encoded = encode_frame(header);
  const std::string_view bytes = bytes_of(header, tensor);
  if (header.slot) {
    memory_.mark_sent(*header.slot);
  }
  if (memory_.write({.header = encoded, .bytes = bytes})) {
    return Way::Memory;
  }
  zmq::message_t body = message_of(bytes, tensor);  // first, because it may throw
  // ZeroMQ takes both or none: if it does not take the second, it has dropped the first.
  const bool is_sent =
      socket_->send(zmq::buffer(encoded), zmq::send_flags::sndmore | zmq::send_flags::dontwait) &&
      socket_->send(std::move(body), zmq::send_flags::dontwait);
  if (is_sent && header.slot) {
    memory_.open();
  }
  return is_sent ? Way::Socket : Way::Full;
}

std::optional<std::string> PeerSender::look(std::chrono::steady_clock::time_point now) {
  memory_.trim(now);
  bool used = false;
  {
    const std::scoped_lock lock(mutex_);
    if (watch_ == nullptr) {
      return std::nullopt;  // nothing was sent yet (DP-5)
    }
    used = sequence_ > 0 || !outbox_.empty();
  }
  return watch_->look(now, used);
}

}  // namespace stagecraft
