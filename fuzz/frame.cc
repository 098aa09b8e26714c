/// Frames from another process: a header that decode_frame accepts is consistent, and reads back
/// the same after encoding. Reassembly turns any sequence of frames into whole tensors or a
/// refusal. Of slots and lent memory a SlotView uses only what lies within the memory.
///
/// An input is a row of frames: a byte of flags (1: the tensor is wanted; 2: the chunk is a byte
/// too long; 4: nothing is wanted any more), the header's length in two bytes, little-endian, the
/// header. Chunks are made up: each byte of a tensor is its position.
#include "stagecraft/futures/transport/zmq/frames/frame.h"

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/shared_memory/lent_memory.h"
#include "stagecraft/futures/transport/shared_memory/slot_view.h"
#include "stagecraft/futures/transport/zmq/frames/reassembly.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

constexpr std::int64_t kLargestTensor = 1 << 16;
constexpr std::size_t kPeriod = 256;

/// Returns the bytes of a tensor from `offset` on.
std::string_view content(std::int64_t offset, std::size_t size) {
  static const std::string bytes = [] {
    std::string all(static_cast<std::size_t>(sc::kLargestChunk) + kPeriod + 1, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<char>(i % kPeriod);
    }
    return all;
  }();
  return std::string_view(bytes).substr(static_cast<std::size_t>(offset) % kPeriod, size);
}

std::optional<sc::FrameHeader> decoded(std::string_view bytes) {
  try {
    return sc::decode_frame(bytes);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::TransportRefused, "a header is refused as such");
    return std::nullopt;
  }
}

void check(const sc::FrameHeader& header) {
  sc::fuzz::require(sc::has_frames(header.dtype), "an accepted dtype can be sent");
  sc::fuzz::require(header.chunk >= 0 && (header.slot || header.chunk <= sc::kLargestChunk) &&
                        header.offset >= 0 && header.offset <= header.total - header.chunk,
                    "an accepted chunk lies within its tensor");
  sc::fuzz::require(!header.slot || (header.chunk == header.total && header.total > 0 &&
                                     header.slot->capacity >= header.total),
                    "an accepted slot holds the whole tensor");
  const std::string again = sc::encode_frame(header);
  sc::fuzz::require(again.size() <= sc::kLongestHeader, "an accepted header can be sent");
  sc::fuzz::require(sc::decode_frame(again) == header, "an encoded header reads back the same");
}

void check_whole(const sc::FrameHeader& last, const at::Tensor& tensor) {
  sc::fuzz::require(last.offset + last.chunk == last.total, "a tensor ends with its last chunk");
  if (!tensor.defined()) {
    return;
  }
  sc::fuzz::require(tensor.sizes() == at::IntArrayRef(last.sizes) &&
                        tensor.scalar_type() == last.dtype && tensor.is_contiguous(),
                    "a tensor is what its header says");
  const auto size = static_cast<std::size_t>(last.total);
  sc::fuzz::require(tensor.nbytes() == size, "a tensor has as many bytes as its header says");
  sc::fuzz::require(
      std::string_view(static_cast<const char*>(tensor.const_data_ptr()), size) == content(0, size),
      "every chunk is where it belongs");
}

sc::MemoryFile again(const sc::Descriptor& file) {
  return sc::MemoryFile(sc::Descriptor(fcntl(file.number(), F_DUPFD_CLOEXEC, 0)));
}

/// Reads the tensor that lies in memory, if the view takes it.
void take_in_memory(const sc::FrameHeader& header) {
  static const auto arena = sc::SlotArena::make(kLargestTensor);
  static const sc::LentMemory lent(kLargestTensor);
  static const auto view =
      std::make_shared<sc::SlotView>(again(arena->file().descriptor()), again(*lent.file()));
  try {
    const at::Tensor tensor = view->take(*header.slot, header.sizes, header.dtype, header.total);
    sc::fuzz::require(header.slot->number == sc::kLent, "no slot was sent");
    const auto* const bytes = static_cast<const char*>(tensor.const_data_ptr());
    sc::fuzz::require(bytes[0] == 0 && bytes[header.total - 1] == 0, "nothing was lent yet");
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::TransportRefused, "a slot is refused as such");
  }
}

void take(sc::Reassembly& arriving, const sc::FrameHeader& header, bool wanted, bool too_long) {
  const std::size_t size = static_cast<std::size_t>(header.chunk) + (too_long ? 1 : 0);
  try {
    if (header.slot) {
      const bool taken = arriving.take_in_slot(header);
      sc::fuzz::require(!taken || header.total <= kLargestTensor, "a tensor in a slot has a limit");
      take_in_memory(header);
    } else if (const auto whole = arriving.take(header, content(header.offset, size), wanted)) {
      sc::fuzz::require(!too_long, "a chunk that is too long is refused");
      check_whole(header, *whole);
    }
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::TransportRefused, "a frame is refused as such");
    sc::fuzz::require(arriving.broken() && arriving.bytes() == 0, "a refusal breaks the link");
  }
  const auto most = static_cast<std::int64_t>(sc::Reassembly::kMostPartial) * kLargestTensor;
  sc::fuzz::require(arriving.bytes() >= 0 && arriving.bytes() <= most, "memory has a limit");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view left(reinterpret_cast<const char*>(data), size);
  sc::Reassembly arriving(kLargestTensor);
  while (left.size() >= 3) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(left[i]); };
    const unsigned flags = byte(0);
    const std::size_t length = byte(1) + (std::size_t{byte(2)} << 8U);
    left.remove_prefix(3);
    const std::string_view bytes = left.substr(0, length);
    left.remove_prefix(bytes.size());
    if (const auto header = decoded(bytes)) {
      check(*header);
      take(arriving, *header, (flags & 1U) != 0, (flags & 2U) != 0);
    } else {
      arriving.break_link();
    }
    if ((flags & 4U) != 0) {
      arriving.keep([](const sc::FrameHeader&) { return false; });
      sc::fuzz::require(arriving.bytes() == 0, "what nobody wants takes no memory");
    }
  }
  return 0;
}
