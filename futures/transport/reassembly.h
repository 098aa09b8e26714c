/// Reassembly: what has come of the tensors that one peer sends. Owned by the thread of a DataPort;
/// no sockets, no locks.
///
/// RS-1: a link's frames are numbered from 0 and taken in that order. After one that is missing, or
///      that cannot be what the peer meant, the link is broken and nothing of it is taken any more:
///      what was lost might have been any tensor, and the next of its tag would pass for it.
/// RS-2: a tensor is given out when all of it is here, never a part of it.
/// RS-3: memory is taken once the header is checked (FR-1), for at most kMostPartial tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/frame.h"

namespace stagecraft {

class Reassembly {
 public:
  static constexpr std::size_t kMostPartial = 64;

  explicit Reassembly(std::int64_t largest_tensor) : largest_tensor_(largest_tensor) {}

  /// Takes the next frame. Returns the tensor that it completes: undefined when nobody wants it;
  /// nothing when it completes none, or is of an older link or a broken one.
  /// Errors: TransportRefused, and the link is broken from now on.
  [[nodiscard]] std::optional<at::Tensor> take(const FrameHeader& header,
                                               std::string_view bytes,
                                               bool wanted);

  /// A frame came that cannot be read, so what it held is not known.
  void break_link();
  [[nodiscard]] bool broken() const { return broken_; }

  /// Gives back the memory of tensors that nobody wants any more.
  template <class Wanted>
  void keep(Wanted&& wanted) {
    for (auto& [transfer, partial] : partial_) {
      if (partial.tensor.defined() && !wanted(partial.header)) {
        bytes_ -= partial.header.total;
        partial.tensor.reset();
      }
    }
  }

  /// Memory of tensors of which a part is here.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  struct Partial {
    FrameHeader header;  ///< of its last frame
    at::Tensor tensor;   ///< undefined: nobody wants it
  };

  void check_order(const FrameHeader& header);
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
