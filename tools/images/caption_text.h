/// CaptionText converts captions to rows of tokens.
///
/// Tokens are the distinct bytes of all captions, in byte order, from 1 on. The largest token ends
/// a caption, and 0 fills the rest of its row. A caption longer than a row is cut. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft::tools {

class CaptionText {
 public:
  /// `captions`: of each image; `length`: tokens in a row.
  CaptionText(const std::vector<std::vector<std::string>>& captions, std::int64_t length);

  [[nodiscard]] std::int64_t vocabulary() const { return vocabulary_; }

  /// Returns a caption of each of these images, drawn at random if it has several. Shapes: images
  /// [n] of int64 to [n, length] of int64.
  [[nodiscard]] at::Tensor of_images(const at::Tensor& images, at::Generator generator) const;

 private:
  const std::vector<std::vector<std::string>> captions_;
  const std::int64_t length_;
  std::int64_t vocabulary_ = 0;
  std::array<std::int64_t, 256> token_{};
};

}  // namespace stagecraft::tools
