#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/images/image_set.h"

namespace stagecraft::tools {
namespace {

TEST_CASE("drawn images are the same for a seed and show what they are called", "[tools][images]") {
  const ImageSet set = drawn_images(1, 16);
  CHECK(at::equal(set.pixels, drawn_images(1, 16).pixels));
  CHECK_FALSE(at::equal(set.pixels, drawn_images(2, 16).pixels));
  CHECK(set.classes == std::vector<std::string>{"circle", "cross", "square", "triangle"});
  const auto images = static_cast<std::size_t>(set.pixels.size(0));
  REQUIRE(set.labels.size() == images);
  REQUIRE(set.captions.size() == images);
  for (std::size_t i = 0; i < images; ++i) {
    CHECK(set.captions[i].front().ends_with(set.classes[static_cast<std::size_t>(set.labels[i])]));
    const at::Tensor image = set.pixels[static_cast<std::int64_t>(i)];
    CHECK(image.min().item().toInt() < image.max().item().toInt());
  }
  const at::Tensor input = as_input(set.pixels, at::arange(4));
  CHECK(input.sizes() == at::IntArrayRef({4, 3, 16, 16}));
  CHECK(input.min().item().toDouble() >= -1.0);
  CHECK(input.max().item().toDouble() <= 1.0);
}

}  // namespace
}  // namespace stagecraft::tools
