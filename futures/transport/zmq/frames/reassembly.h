/// Reassembly puts together the tensors that one peer sends. The thread of a DataPort owns it; it
/// has no sockets and no locks.
///
/// RS-1: a link's frames are numbered from 0 and taken in that order. The link breaks at a missing
///       frame, or at one that the peer cannot have meant, and takes nothing more: the lost frame
///       may belong to any tensor, and the next tensor of its tag would take its place.
/// RS-2: a tensor is returned when all of it is here, never in part.
/// RS-3: memory is allocated after the header is checked (FR-1), for at most kMostPartial tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/zmq/frames/frame.h"

namespace stagecraft {

class Reassembly {
 public:
  static constexpr std::size_t kMostPartial = 64;

  explicit Reassembly(std::int64_t largest_tensor) : largest_tensor_(largest_tensor) {}

  /// Takes the next frame. Returns the tensor that it completes (undefined if nobody wants the
  /// tensor). Returns nothing if it completes none, or if the link is old or broken. Errors:
  /// TransportRefused; the link is broken from then on.
  [[nodiscard]] std::optional<at::Tensor> take(const FrameHeader& header,
                                               std::string_view bytes,
                                               bool wanted);

  /// Takes the next frame of a tensor that lies in a slot. Returns false if the link is old or
  /// broken. Errors: as above.
  [[nodiscard]] bool take_in_slot(const FrameHeader& header);

  /// Returns whether frames of its link come before this one.
  [[nodiscard]] bool is_early(const FrameHeader& header) const {
    return link_ && header.link == *link_ && !broken_ && header.sequence > next_;
  }

  /// Breaks the link, because a frame could not be read and its content is unknown.
  void break_link();
  [[nodiscard]] bool broken() const { return broken_; }

  /// Releases the memory of tensors that are no longer wanted.
  template <class Wanted>
  void keep(Wanted&& wanted) {
    for (auto& [transfer, partial] : partial_) {
      if (partial.tensor.defined() && !wanted(partial.header)) {
        bytes_ -= partial.header.total;
        partial.tensor.reset();
      }
    }
  }

  /// Returns the memory of tensors that have arrived in part.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  struct Partial {
    FrameHeader header;  ///< the header of its last frame
    at::Tensor tensor;   ///< undefined: not wanted
  };

  [[nodiscard]] bool is_over(const FrameHeader& header) const;
  void check_order(const FrameHeader& header);
  void check_size(const FrameHeader& header) const;
  [[nodiscard]] std::optional<at::Tensor> add(const FrameHeader& header,
                                              std::string_view bytes,
                                              bool wanted);
  void forget_partial();

  const std::int64_t largest_tensor_;
  std::optional<std::uint64_t> link_;
  std::uint64_t next_ = 0;  ///< sequence number
  bool broken_ = false;
  std::unordered_map<std::uint64_t, Partial> partial_;  ///< by transfer
  std::int64_t bytes_ = 0;
};

}  // namespace stagecraft
