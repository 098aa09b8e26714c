/// ByteText is a text as training data, one token per byte.
///
/// The vocabulary is the set of distinct bytes in the text, in byte order. A batch is a set of
/// random windows that depends on (seed, step) alone, so a resumed run, another schedule and
/// another cut all see the same data. A sub-command reads it once; it is immutable afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft::tools {

/// TextBatch holds the data of one step. Shapes: both [sequences, length] of int64; `targets` is
/// `tokens` shifted by one byte.
struct TextBatch {
  at::Tensor tokens;
  at::Tensor targets;
};

class ByteText {
 public:
  /// Reads the whole file, or a pipe to its end.
  /// Errors: UsageFile if it cannot be read or is shorter than one window of `length` + 2 bytes;
  ///         DeviceOutOfMemory if it has more than `most` bytes.
  static ByteText read(const std::string& path,
                       std::int64_t length,
                       double most = std::numeric_limits<double>::infinity());

  [[nodiscard]] std::int64_t vocabulary() const { return vocabulary_; }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

  /// Returns `sequences` windows of the length given to read().
  [[nodiscard]] TextBatch batch(std::uint64_t seed,
                                std::int64_t step,
                                std::int64_t sequences) const;

 private:
  ByteText(std::vector<std::uint8_t> bytes, std::int64_t length);

  std::int64_t length_;
  std::int64_t vocabulary_ = 0;
  std::vector<std::uint8_t> tokens_;
};

}  // namespace stagecraft::tools
