#include "stagecraft/tools/images/caption_text.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

namespace stagecraft::tools {

CaptionText::CaptionText(const std::vector<std::vector<std::string>>& captions, std::int64_t length)
    : captions_(captions), length_(length) {
  std::array<bool, 256> present{};
  for (const std::vector<std::string>& of_image : captions_) {
    for (const std::string& caption : of_image) {
      for (const char c : caption) {
        present[static_cast<unsigned char>(c)] = true;
      }
    }
  }
  std::int64_t next = 1;
  for (std::size_t byte = 0; byte < present.size(); ++byte) {
    token_[byte] = present[byte] ? next++ : 0;
  }
  vocabulary_ = next + 1;
}

at::Tensor CaptionText::of_images(const at::Tensor& images, at::Generator generator) const {
  const std::int64_t rows = images.size(0);
  // Draw one number per image, for any number of captions: the draws of other images then do not
  // change.
  const at::Tensor drawn = at::randint(
      0, std::numeric_limits<std::int32_t>::max(), {rows}, std::move(generator), at::kLong);
  const auto* image = images.const_data_ptr<std::int64_t>();
  const auto* number = drawn.const_data_ptr<std::int64_t>();
  at::Tensor tokens = at::zeros({rows, length_}, at::kLong);
  auto* row = tokens.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < rows; ++i, row += length_) {
    const auto& captions = captions_[static_cast<std::size_t>(image[i])];
    const std::string& caption = captions[static_cast<std::size_t>(number[i]) % captions.size()];
    const std::size_t length = std::min(caption.size(), static_cast<std::size_t>(length_ - 1));
    for (std::size_t c = 0; c < length; ++c) {
      row[c] = token_[static_cast<unsigned char>(caption[c])];
    }
    row[length] = vocabulary_ - 1;
  }
  return tokens;
}

}  // namespace stagecraft::tools
