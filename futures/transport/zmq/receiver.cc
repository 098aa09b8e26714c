#include "stagecraft/futures/transport/zmq/receiver.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <zmq.hpp>

#include "stagecraft/base/log.h"
#include "stagecraft/futures/transport/shared_memory/arena_door.h"
#include "stagecraft/futures/transport/zmq/attached_networks.h"
#include "stagecraft/futures/transport/zmq/peers.h"

namespace stagecraft {

struct Receiver::Message {
  std::string key;  ///< of the sender; empty when the socket does not know
  std::vector<zmq::message_t> parts;
};

namespace {

std::string_view view(const zmq::message_t& message) {
  return {static_cast<const char*>(message.data()), message.size()};
}

}  // namespace

bool Receiver::take_messages() {
  const bool more = take_from_socket();
  return take_from_rings() || more;
}

bool Receiver::fall_asleep() {
  return std::ranges::all_of(
      with_rings_, [](const auto& peer) { return !peer->ring || peer->ring->fall_asleep(); });
}

void Receiver::list_bells(std::vector<PortSockets::Readable>& all) const {
  for (const auto& peer : with_rings_) {
    all.push_back({peer->bell.number()});
  }
}

void Receiver::wake_up(std::span<const PortSockets::Readable> bells) {
  for (std::size_t i = 0; i < with_rings_.size(); ++i) {
    Peer& peer = *with_rings_[i];
    if (peer.ring) {
      peer.ring->wake_up();
    }
    char rung = 0;
    if (bells[i].is_ready && peer.bell &&
        recv(peer.bell.number(), &rung, sizeof rung, MSG_DONTWAIT) == 0) {
      peer.bell = Descriptor();  // the peer has ended; what it has written stays
    }
  }
}

bool Receiver::take_from_socket() {
  for (int i = 0; i < kTurn; ++i) {
    Message message;
    bool more = false;
    do {
      zmq::message_t part;
      if (!sockets_.incoming().recv(part, zmq::recv_flags::dontwait)) {
        return false;
      }
      // Reads and drops parts beyond those of a frame.
      more = part.more();
      if (message.parts.size() < 3) {
        message.parts.push_back(std::move(part));
      }
    } while (more);
    if (const char* user = zmq_msg_gets(message.parts.front().handle(), "User-Id")) {
      message.key = user;
    }
    take(message);
  }
  return true;
}

bool Receiver::take_from_rings() {
  bool more = false;
  for (const auto& peer : with_rings_) {
    int taken = 0;
    while (taken < kTurn && take_from_ring(*peer)) {
      ++taken;
    }
    more = more || taken == kTurn;
  }
  std::erase_if(with_rings_, [](const auto& peer) { return !peer->ring; });
  return more;
}

void Receiver::take(const Message& message) {
  const std::shared_ptr<Peer> peer = peers_.find(message.key);
  if (peer == nullptr) {
    counter_.change_link(message.key, [](LinkCounts& link) { ++link.frames_refused; });
    return;
  }
  bool was_broken = peer->arriving.broken();
  try {
    const FrameHeader header = header_of(message);
    // No ring holds more frames. One that is filled again meanwhile must not hold up the loop.
    constexpr int kMostFrames = MemoryFile::kRingBytes / 32;
    for (int i = 0; i < kMostFrames && peer->arriving.is_early(header); ++i) {
      if (!take_from_ring(*peer)) {
        break;
      }
    }
    was_broken = peer->arriving.broken();
    take_frame(*peer, header, view(message.parts[1]));
  } catch (const std::exception& error) {
    break_link(*peer, error, was_broken);
  }
  if (peer->ring && std::ranges::find(with_rings_, peer) == with_rings_.end()) {
    with_rings_.push_back(peer);
  }
  count_partial(*peer);
}

FrameHeader Receiver::header_of(const Message& message) {
  if (message.parts.size() != 2) {
    throw Error(Errc::TransportRefused,
                fmt::format("malformed frame: it has {} parts, expected 2: a header and a chunk",
                            message.parts.size()));
  }
  return decode_frame(view(message.parts[0]));
}

void Receiver::break_link(Peer& peer, const std::exception& why, bool was_broken) {
  const std::string& key = peer.address.key;
  peer.arriving.break_link();
  peer.close_ring();
  count_refused(key, why.what());
  if (!was_broken && options_.when_broken) {
    options_.when_broken(
        key,
        Error(Errc::TransportRefused,
              fmt::format("the link from the peer with key {} broke: {}", key, why.what())));
  }
}

/// Takes the next frame of the peer's ring. Returns false if there is none whose turn it is.
bool Receiver::take_from_ring(Peer& peer) {
  if (!peer.ring) {
    return false;
  }
  const bool was_broken = peer.arriving.broken();
  try {
    const std::optional<RingMessage> message = peer.ring->next();
    if (!message) {
      return false;
    }
    const FrameHeader header = decode_frame(message->header);
    if (peer.arriving.is_early(header)) {
      return false;
    }
    if (header.slot && header.slot->arena != peer.arena) {
      throw Error(Errc::TransportRefused, "a frame in shared memory names other memory");
    }
    peer.ring->pop();
    take_frame(peer, header, message->bytes);
  } catch (const std::exception& error) {
    break_link(peer, error, was_broken);
  }
  count_partial(peer);
  return true;
}

void Receiver::take_frame(Peer& peer, const FrameHeader& header, std::string_view bytes) {
  const std::string& key = peer.address.key;
  if (header.slot && !bytes.empty()) {
    throw Error(Errc::TransportRefused, "malformed frame: it has a slot and bytes as well");
  }
  const auto mailboxes = networks_.find(header.network);
  Mailbox* const mailbox =
      mailboxes != nullptr && networks_.is_at(header.network, header.from, key)  // keeps DP-9
          ? mailboxes->find(header.to)
          : nullptr;
  const bool wanted = mailbox != nullptr && mailbox->accepts(header.tag);
  std::optional<at::Tensor> whole =
      header.slot ? take_in_slot(peer, header, wanted) : peer.arriving.take(header, bytes, wanted);
  if (peer.arriving.broken()) {
    count_refused(key, "its link broke before");
    return;
  }
  counter_.change_link(key, [&](LinkCounts& link) {
    link.bytes_received += header.chunk;
    link.tensors_received += whole ? 1 : 0;
  });
  if (!whole) {
    return;
  }
  if (mailbox != nullptr) {
    // The mailbox counts a tensor that is not wanted: an epoch that is over stays over.
    mailbox->deliver(header.from, header.tag, *std::move(whole));
  } else {
    count_misdirected(key, header);
  }
}

std::optional<at::Tensor> Receiver::take_in_slot(Peer& peer,
                                                 const FrameHeader& header,
                                                 bool wanted) {
  if (!peer.arriving.take_in_slot(header)) {
    return std::nullopt;
  }
  if (peer.memory == nullptr || peer.arena != header.slot->arena) {
    peer.close_ring();  // it views the memory
    ArenaDoor::Claimed claimed = door_.claim(header.slot->arena);
    peer.memory = std::move(claimed.view);
    peer.arena = header.slot->arena;
    if (peer.memory != nullptr) {
      peer.ring.emplace(peer.memory->file().ring());
      peer.bell = std::move(claimed.connection);
    }
  }
  if (peer.memory == nullptr) {
    throw Error(Errc::TransportRefused, "a frame names shared memory that was not offered");
  }
  at::Tensor tensor = peer.memory->take(*header.slot, header.sizes, header.dtype, header.total);
  if (header.to != kDriver || !wanted) {
    return tensor;
  }
  // The user may keep what the driver receives.
  at::Tensor own = at::empty(header.sizes, at::TensorOptions().dtype(header.dtype));
  std::memcpy(
      own.mutable_data_ptr(), tensor.const_data_ptr(), static_cast<std::size_t>(header.total));
  return own;
}

void Receiver::tidy() {
  for (const auto& peer : peers_.all()) {
    peer->arriving.keep([this](const FrameHeader& header) {
      const auto mailboxes = networks_.find(header.network);
      const Mailbox* const mailbox = mailboxes == nullptr ? nullptr : mailboxes->find(header.to);
      return mailbox != nullptr && mailbox->accepts(header.tag);
    });
    count_partial(*peer);
  }
}

void Receiver::forget(Peer& peer) {
  peer.arriving.break_link();
  peer.close_ring();
  peer.memory.reset();
  count_partial(peer);
}

void Receiver::count_partial(Peer& peer) {
  const std::int64_t now = peer.arriving.bytes();
  if (now != peer.partial) {
    const std::int64_t more = now - std::exchange(peer.partial, now);
    counter_.change([more](PortCounts& counts) { counts.partial_bytes += more; });
  }
}

void Receiver::count_refused(const std::string& key, std::string_view why) {
  const std::int64_t refused =
      counter_.change_link(key, [](LinkCounts& link) { return ++link.frames_refused; });
  if (is_logged(refused)) {
    log(Level::Warning, "frame refused", {{"key", key}, {"why", why}, {"refused", refused}});
  }
}

void Receiver::count_misdirected(const std::string& key, const FrameHeader& header) {
  const std::int64_t misdirected =
      counter_.change([](PortCounts& counts) { return ++counts.tensors_misdirected; });
  if (is_logged(misdirected)) {
    // The last messages of a network may come after its end.
    log(networks_.has_ended(header.network) ? Level::Debug : Level::Warning,
        "tensor misdirected",
        {{"key", key},
         {"network", header.network},
         {"from", header.from},
         {"to", header.to},
         {"tag", to_string(header.tag)},
         {"misdirected", misdirected}});
  }
}

}  // namespace stagecraft
