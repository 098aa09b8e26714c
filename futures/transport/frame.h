/// Frame: one piece of a tensor on its way to another process: a header and up to a chunk of bytes.
///
/// DataPort sends and receives them; docs/protocol.md gives the layout. Every header says all about
/// its tensor, so that a receiver needs nothing but what it has checked itself.
/// FR-1: what decode_frame accepts is consistent: the dtype is known, sizes and total agree, and
///      the chunk lies within the tensor. So whoever takes memory by it takes `total` bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

/// Which crew's ranks are meant: several crews may share a port. Unique in a cluster.
using NetworkId = StrongId<struct NetworkName, std::uint64_t>;

inline constexpr int kFrameVersion = 1;
/// A header is shorter than this, and no dimension more than kMostDimensions is sent.
inline constexpr std::size_t kLongestHeader = 1024;
inline constexpr std::size_t kMostDimensions = 64;
/// No port sends larger chunks, so no port takes larger ones.
inline constexpr std::int64_t kLargestChunk = std::int64_t{256} << 10U;

struct FrameHeader {
  std::uint64_t link = 0;      ///< counts the connections from one port to another
  std::uint64_t sequence = 0;  ///< counts the frames of a link from 0
  std::uint64_t transfer = 0;  ///< counts the tensors of a link
  NetworkId network;
  Rank from;
  Rank to;
  Tag tag;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;
  std::int64_t total = 0;   ///< bytes of the tensor
  std::int64_t offset = 0;  ///< of this chunk in the tensor's bytes
  std::int64_t chunk = 0;   ///< bytes of this chunk

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

[[nodiscard]] std::string encode_frame(const FrameHeader& header);

/// Reads untrusted bytes.
/// Errors: TransportRefused, with what was wrong.
[[nodiscard]] FrameHeader decode_frame(std::string_view bytes);

/// Whether tensors of this type can be sent: all but the quantized.
[[nodiscard]] bool has_frames(at::ScalarType dtype);

}  // namespace stagecraft
