#include "stagecraft/futures/transport/zmq/frames/outbox.h"

#include <algorithm>

namespace stagecraft {

std::size_t Outbox::LaneHash::operator()(const LaneKey& key) const noexcept {
  std::size_t seed = std::hash<Tag>{}(key.tag);
  seed = hash_combine(seed, static_cast<std::int64_t>(key.network.value));
  seed = hash_combine(seed, key.from.value);
  return hash_combine(seed, key.to.value);
}

void Outbox::push(Outgoing outgoing) {
  auto& lane = *lanes_
                    .try_emplace({.network = outgoing.network,
                                  .from = outgoing.from,
                                  .to = outgoing.to,
                                  .tag = outgoing.tag})
                    .first;
  const auto total = static_cast<std::int64_t>(outgoing.tensor.nbytes());
  lane.second.push_back({.tensor = std::move(outgoing.tensor),
                         .slot = outgoing.slot,
                         .transfer = transfers_++,
                         .total = total});
  ++tensors_;
  if (lane.second.size() == 1) {
    make_ready(lane);
  }
}

std::pair<FrameHeader, at::Tensor> Outbox::next() const {
  const auto& [key, lane] = *(small_is_next() ? small_.front() : turns_.front());
  const Sending& sending = lane.front();
  FrameHeader header;
  header.transfer = sending.transfer;
  header.network = key.network;
  header.from = key.from;
  header.to = key.to;
  header.tag = key.tag;
  header.dtype = sending.tensor.scalar_type();
  header.sizes = sending.tensor.sizes().vec();
  header.total = sending.total;
  header.offset = sending.offset;
  header.chunk = chunk_of(sending, chunk_bytes_);
  header.slot = sending.slot;
  return {std::move(header), sending.tensor};
}

void Outbox::sent() {
  const bool small = small_is_next();
  auto& lane = *(small ? small_.front() : turns_.front());
  Sending& sending = lane.second.front();
  const std::int64_t bytes = chunk_of(sending, chunk_bytes_);
  sending.offset += bytes;
  if (small) {
    small_.pop_front();
    small_bytes_ += sending.slot ? static_cast<std::int64_t>(kLongestHeader) : bytes;
  } else {
    turns_.pop_front();
    small_bytes_ = 0;
  }
  if (sending.offset < sending.total) {
    turns_.push_back(&lane);
    return;
  }
  --tensors_;
  if (!small && !waiting_.empty()) {
    turns_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  lane.second.pop_front();
  if (lane.second.empty()) {
    lanes_.erase(lanes_.find(LaneKey(lane.first)));
  } else {
    make_ready(lane);
  }
}

void Outbox::make_ready(Lanes::value_type& lane) {
  const Sending& first = lane.second.front();
  if (first.slot || first.total <= chunk_bytes_) {
    small_.push_back(&lane);
  } else if (turns_.size() < kInterleaved) {
    turns_.push_back(&lane);
  } else {
    waiting_.push_back(&lane);
  }
}

bool Outbox::small_is_next() const {
  return !small_.empty() && (turns_.empty() || small_bytes_ < chunk_bytes_);
}

std::int64_t Outbox::chunk_of(const Sending& sending, std::int64_t chunk_bytes) {
  return sending.slot ? sending.total : std::min(chunk_bytes, sending.total - sending.offset);
}

}  // namespace stagecraft
