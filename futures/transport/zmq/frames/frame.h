/// Frame is one piece of a tensor on its way to another process: a header and up to a chunk of
/// bytes, or a header alone for a tensor that lies in memory which both processes share.
///
/// DataPort sends and receives frames; docs/protocol.md gives the layout. Every header describes
/// its whole tensor, so a receiver needs only data that it has checked itself.
/// FR-1: a header that decode_frame accepts is consistent: the dtype is known, sizes and total
///       agree, and the chunk lies within the tensor. So a receiver allocates exactly `total`
///       bytes. A slot can hold the tensor, and then the chunk is the whole tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"
#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

/// Identifies the crew of the ranks, because several crews may share a port. It is unique in a
/// cluster.
using NetworkId = StrongId<struct NetworkName, std::uint64_t>;

inline constexpr int kFrameVersion = 1;
/// A header is shorter than this. Tensors with more than kMostDimensions dimensions are not sent.
inline constexpr std::size_t kLongestHeader = 1024;
inline constexpr std::size_t kMostDimensions = 64;
/// No port sends larger chunks, so no port accepts larger ones.
inline constexpr std::int64_t kLargestChunk = std::int64_t{256} << 10U;

struct FrameHeader {
  std::uint64_t link = 0;      ///< number of the connection from one port to another
  std::uint64_t sequence = 0;  ///< number of the frame within the link, from 0
  std::uint64_t transfer = 0;  ///< number of the tensor within the link
  NetworkId network;
  Rank from;
  Rank to;
  Tag tag;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;       ///< bytes of the tensor
  std::int64_t offset = 0;      ///< of this chunk in the tensor
  std::int64_t chunk = 0;       ///< bytes of this chunk
  std::optional<SlotRef> slot;  ///< where the tensor lies, if its bytes are not in frames

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

[[nodiscard]] std::string encode_frame(const FrameHeader& header);

/// Decodes untrusted bytes. Errors: TransportRefused, with the fault.
[[nodiscard]] FrameHeader decode_frame(std::string_view bytes);

/// Returns whether tensors of this type can be sent. Only quantized tensors cannot.
[[nodiscard]] bool has_frames(at::ScalarType dtype);

}  // namespace stagecraft
