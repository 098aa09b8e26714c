#include "stagecraft/tools/images/decode_image.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/images/colors.h"
#include "stagecraft/tools/images/image_set.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::made_jpeg;
using tests::made_png;

std::string decoding_failure(const std::string& content) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("it.png", content);
  const std::string message = refusal([&] { (void)decode_image(path); }, Errc::UsageFile);
  CHECK_THAT(message, ContainsSubstring(path));
  return message;
}

std::vector<int> decoded(const std::string& content) {
  const tests::TemporaryFolder folder;
  const Pixels pixels = decode_image(folder.write("it.jpg", content));
  CHECK(pixels.rgb.size() == static_cast<std::size_t>(3 * pixels.width * pixels.height));
  return color_of(square_of(pixels, 4));
}

TEST_CASE("PNG and JPEG arrive as RGB, whatever they were", "[tools][images]") {
  CHECK(decoded(made_png(9, 5, kRed)) == std::vector{250, 10, 20});
  CHECK(decoded(made_png(5, 9, {77, 0, 0, 255}, /*is_gray=*/true)) == std::vector{77, 77, 77});
  // A transparent image is read as white.
  CHECK(decoded(made_png(5, 5, {9, 9, 9, 0})) == std::vector{255, 255, 255});
  CHECK(decoded(made_png(5, 5, {9, 9, 9, 0}, /*is_gray=*/true)) == std::vector{255, 255, 255});
  CHECK(decoded(made_jpeg(16, 8, {128, 128, 128, 0})) == std::vector{128, 128, 128});
  CHECK(decoded(made_jpeg(16, 8, {60, 60, 60, 0}, tests::JpegColors::Gray)) ==
        std::vector{60, 60, 60});
  CHECK(decoded(made_png(4, 4, kRed)) == std::vector{250, 10, 20});
  CHECK(decoded(made_png(1, 1, kRed)) == std::vector{250, 10, 20});
}

TEST_CASE("an image that is broken, hostile or none is refused by its name", "[tools][images]") {
  const std::string png = made_png(64, 64, kRed), jpeg = made_jpeg(64, 64, kRed);
  CHECK_THAT(decoding_failure(""), ContainsSubstring("an empty file"));
  CHECK_THAT(decoding_failure("GIF89a"), ContainsSubstring("a file that is neither"));
  for (const std::size_t kept :
       {std::size_t{8}, std::size_t{20}, png.size() / 2, png.size() - 20}) {
    CHECK_THAT(decoding_failure(png.substr(0, kept)), ContainsSubstring("a damaged PNG"));
  }
  for (const std::size_t kept :
       {std::size_t{3}, std::size_t{20}, jpeg.size() / 2, jpeg.size() - 9}) {
    CHECK_THAT(decoding_failure(jpeg.substr(0, kept)), ContainsSubstring("a damaged JPEG"));
  }
  std::string flipped = png;
  flipped[png.size() / 2] = static_cast<char>(~flipped[png.size() / 2]);
  CHECK_THAT(decoding_failure(flipped), ContainsSubstring("a damaged PNG"));
  CHECK_THAT(decoding_failure(tests::huge_png(900'000, 900'000)),
             ContainsSubstring("900000 x 900000 pixels (at most 67108864 in all)"));
  CHECK_THAT(decoding_failure(tests::huge_png(0, 5)), ContainsSubstring("a damaged PNG"));
  std::string tall = jpeg;
  // FF C0 is followed by length, bits, height, width. libjpeg accepts at most 65500 x 65500.
  const std::size_t frame = tall.find("\xFF\xC0");
  REQUIRE(frame != std::string::npos);
  tall.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");
  CHECK_THAT(decoding_failure(tall), ContainsSubstring("65500 x 65500 pixels"));
  CHECK_THAT(decoding_failure(made_jpeg(8, 8, kRed, tests::JpegColors::Cmyk)),
             ContainsSubstring("CMYK"));
  const tests::TemporaryFolder folder;
  const std::string large = folder.write("large.png", "");
  std::filesystem::resize_file(large, static_cast<std::uintmax_t>(kMostFileBytes) + 1);
  CHECK_THAT(refusal([&] { (void)decode_image(large); }, Errc::UsageFile),
             ContainsSubstring("found 256.1 MiB (at most 256.0 MiB)"));
  CHECK_THAT(refusal([&] { (void)decode_image(folder.path()); }, Errc::UsageFile),
             ContainsSubstring("no regular file"));
}

}  // namespace
}  // namespace stagecraft::tools
