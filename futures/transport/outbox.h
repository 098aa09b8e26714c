/// Outbox: the tensors that wait for one peer, and which piece of which of them goes next. Owned by
/// the thread of a DataPort; no sockets, no locks.
///
/// Small tensors, of one chunk, go before the next chunk of a larger one, so that they are not
/// stuck behind it; a chunk's worth of them at a time, so that the larger one gets on too. At most
/// kInterleaved larger ones take turns, the others wait for these.
/// OB-1: of equal (network, sender, receiver, tag) one tensor is sent whole before the next is
///      begun (keeps T-1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/frame.h"

namespace stagecraft {

/// A tensor that was handed over to be sent.
struct Outgoing {
  NetworkId network;
  Rank from;
  Rank to;
  Tag tag;
  at::Tensor tensor;  ///< in the memory of the CPU, contiguous, without autograd
};

class Outbox {
 public:
  static constexpr std::size_t kInterleaved = 4;

  /// Requires: 0 < chunk_bytes <= kLargestChunk.
  explicit Outbox(std::int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  void push(Outgoing outgoing);

  [[nodiscard]] bool empty() const { return lanes_.empty(); }
  /// Tensors of which something is still to be sent.
  [[nodiscard]] std::int64_t tensors() const { return tensors_; }

  /// What to send next, and the tensor it is of. `link` and `sequence` are left to the caller.
  /// Requires: not empty.
  [[nodiscard]] std::pair<FrameHeader, at::Tensor> next() const;
  /// What next() returned is on its way.
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
    std::uint64_t transfer = 0;
    std::int64_t total = 0;
    std::int64_t offset = 0;
  };
  /// Its first tensor is under way, the others wait for it.
  using Lane = std::deque<Sending>;
  using Lanes = std::unordered_map<LaneKey, Lane, LaneHash>;

  void make_ready(Lanes::value_type& lane);
  [[nodiscard]] bool small_is_next() const;
  [[nodiscard]] static std::int64_t chunk_of(const Sending& sending, std::int64_t chunk_bytes);

  std::int64_t chunk_bytes_;
  Lanes lanes_;
  std::deque<Lanes::value_type*> small_;    ///< lanes whose first tensor is of one chunk
  std::deque<Lanes::value_type*> turns_;    ///< of larger ones; the first has its turn
  std::deque<Lanes::value_type*> waiting_;  ///< for a place among those
  std::int64_t small_bytes_ = 0;            ///< of small ones since the last turn
  std::int64_t tensors_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace stagecraft
