/// Outbox holds the tensors that wait for one peer and picks the next piece to send. The thread of
/// a DataPort owns it; it has no sockets and no locks.
///
/// Small tensors, of one chunk or in a slot, go before the next chunk of a larger one, so they do
/// not wait for it. At most a chunk's worth of them goes at a time (a slot counts as a header), so
/// the larger one makes progress too. At most kInterleaved larger tensors take turns; others wait
/// for a free place.
/// OB-1: one tensor of a (network, sender, receiver, tag) is sent whole before the next one begins
///       (keeps T-1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/zmq/frames/frame.h"

namespace stagecraft {

/// Outgoing is a tensor that was handed over for sending.
struct Outgoing {
  NetworkId network;
  Rank from;
  Rank to;
  Tag tag;
  std::optional<SlotRef> slot;  ///< of `tensor`, if both processes share its memory
  at::Tensor tensor;            ///< in CPU memory, contiguous, without autograd
};

class Outbox {
 public:
  static constexpr std::size_t kInterleaved = 4;

  /// Requires: 0 < chunk_bytes <= kLargestChunk.
  explicit Outbox(std::int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  void push(Outgoing outgoing);

  [[nodiscard]] bool empty() const { return lanes_.empty(); }
  /// Returns the number of tensors that are not sent completely.
  [[nodiscard]] std::int64_t tensors() const { return tensors_; }

  /// Returns the next frame's header and its tensor. The caller sets `link` and `sequence`.
  /// Requires: not empty.
  [[nodiscard]] std::pair<FrameHeader, at::Tensor> next() const;
  /// Marks the frame that next() returned as sent.
  void sent();

 private:
  struct LaneKey {
    NetworkId network;
    Rank from;
    Rank to;
    Tag tag;

    friend bool operator==(const LaneKey&, const LaneKey&) = default;
  };
  struct LaneHash {
    std::size_t operator()(const LaneKey& key) const noexcept;
  };
  struct Sending {
    at::Tensor tensor;
    std::optional<SlotRef> slot;
    std::uint64_t transfer = 0;
    std::int64_t total = 0;
    std::int64_t offset = 0;
  };
  /// Of a lane, the first tensor is being sent; the others wait for it.
  using Lane = std::deque<Sending>;
  using Lanes = std::unordered_map<LaneKey, Lane, LaneHash>;

  void make_ready(Lanes::value_type& lane);
  [[nodiscard]] bool small_is_next() const;
  [[nodiscard]] static std::int64_t chunk_of(const Sending& sending, std::int64_t chunk_bytes);

  std::int64_t chunk_bytes_;
  Lanes lanes_;
  std::deque<Lanes::value_type*> small_;    ///< lanes whose first tensor is sent by one frame
  std::deque<Lanes::value_type*> turns_;    ///< lanes of larger tensors; the first one has its turn
  std::deque<Lanes::value_type*> waiting_;  ///< wait for a place among `turns_`
  std::int64_t small_bytes_ = 0;            ///< bytes of small tensors sent since the last turn
  std::int64_t tensors_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace stagecraft
