/// Tests images from users' folders: good ones arrive unchanged, others are refused by name.

#include <cstring>
#include <filesystem>
#include <set>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/images/made_images.h"
#include "stagecraft/tools/images/caption_text.h"
#include "stagecraft/tools/images/example_draw.h"
#include "stagecraft/tools/images/image_set.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::made_jpeg;
using tests::made_png;
using tests::write_below;

constexpr double kPlenty = 1e9;
constexpr tests::Rgba kRed{250, 10, 20, 255};

std::string decoding_failure(const std::string& content) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("it.png", content);
  const std::string message = refusal([&] { (void)decode_image(path); }, Errc::UsageFile);
  CHECK_THAT(message, ContainsSubstring(path));
  return message;
}

/// Returns the color of every pixel, which must be equal.
std::vector<int> color_of(const at::Tensor& image) {
  std::vector<int> color;
  for (std::int64_t c = 0; c < 3; ++c) {
    CHECK(image[c].min().item().toInt() == image[c].max().item().toInt());
    color.push_back(image[c].min().item().toInt());
  }
  return color;
}

std::vector<int> decoded(const std::string& content) {
  const tests::TemporaryFolder folder;
  const Pixels pixels = decode_image(folder.write("it.jpg", content));
  CHECK(pixels.rgb.size() == static_cast<std::size_t>(3 * pixels.width * pixels.height));
  return color_of(square_of(pixels, 4));
}

std::string images_failure(const std::string& folder) {
  return refusal([&] { (void)read_classes(folder, 4, kPlenty); }, Errc::UsageFile);
}

std::string captions_failure(const std::string& folder) {
  return refusal([&] { (void)read_captions(folder, 4, kPlenty); }, Errc::UsageFile);
}

/// Two classes of PNG and JPEG files.
void write_classes(const std::string& folder) {
  write_below(folder, "red/1.png", made_png(8, 8, kRed));
  write_below(folder, "red/deep/2.jpg", made_jpeg(8, 8, kRed));
  write_below(folder, "blue/1.png", made_png(6, 9, {0, 0, 255, 255}));
  write_below(folder, "blue/2.png", made_png(4, 4, {0, 0, 250, 255}));
  write_below(folder, ".cache/0.png", "nothing of ours");
  write_below(
      folder, "captions.txt", "red/1.png\ta red one\nred/1.png\tred\n\nblue/2.png\tblue\r\n");
}

}  // namespace

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

TEST_CASE("the middle of an image is what stays of it", "[tools][images]") {
  Pixels wide{.height = 2, .width = 6, .rgb = std::vector<std::uint8_t>(36)};
  for (std::size_t i = 0; i < 36; ++i) {
    const std::size_t column = i / 3 % 6;
    wide.rgb[i] = column == 2 || column == 3 ? 200 : 10;
  }
  CHECK(color_of(square_of(wide, 2)) == std::vector{200, 200, 200});
  CHECK(color_of(square_of(wide, 5)) == std::vector{200, 200, 200});
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
  CHECK_THAT(refusal([&] { (void)decode_image(folder.path()); }, Errc::UsageFile),
             ContainsSubstring("no regular file"));
}

TEST_CASE("a folder's sub-folders are its classes, in the order of their names",
          "[tools][images]") {
  const tests::TemporaryFolder folder;
  write_classes(folder.path());
  const ImageSet set = read_classes(folder.path(), 4, kPlenty);
  CHECK(set.classes == std::vector<std::string>{"blue", "red"});
  CHECK(set.labels == std::vector<std::int64_t>{0, 0, 1, 1});
  REQUIRE(set.pixels.sizes() == at::IntArrayRef({4, 3, 4, 4}));
  CHECK(color_of(set.pixels[0]) == std::vector{0, 0, 255});
  CHECK(color_of(set.pixels[1]) == std::vector{0, 0, 250});
  CHECK(color_of(set.pixels[2]) == std::vector{250, 10, 20});
  CHECK(refusal([&] { (void)read_classes(folder.path(), 4, 100.0); }, Errc::DeviceOutOfMemory)
            .find("smaller --image") != std::string::npos);
  CHECK(read_images(folder.path(), 4, kPlenty).pixels.size(0) == 4);
}

TEST_CASE("a folder that makes no classes is refused", "[tools][images]") {
  const tests::TemporaryFolder folder;
  CHECK_THAT(images_failure(folder.path() + "/none"), ContainsSubstring("found nothing at"));
  CHECK_THAT(images_failure(folder.write("file", "x")), ContainsSubstring("found a file at"));
  std::filesystem::remove(folder.path() + "/file");
  CHECK_THAT(images_failure(folder.path()), ContainsSubstring("found none in"));
  write_below(folder.path(), "red/1.png", made_png(4, 4, kRed));
  CHECK_THAT(images_failure(folder.path()), ContainsSubstring("found only 'red'"));
  write_below(folder.path(), "2.png", made_png(4, 4, kRed));
  CHECK_THAT(images_failure(folder.path()), ContainsSubstring("'2.png' outside"));
  std::filesystem::remove(folder.path() + "/2.png");
  write_below(folder.path(), "notes/readme.md", "about these");
  CHECK_THAT(images_failure(folder.path()),
             ContainsSubstring("neither at") && ContainsSubstring("notes/readme.md"));
}

TEST_CASE("captions name the images of their folder", "[tools][images]") {
  const tests::TemporaryFolder folder;
  CHECK_THAT(captions_failure(folder.path()), ContainsSubstring("captions.txt'; write it"));
  write_classes(folder.path());
  const ImageSet set = read_captions(folder.path(), 4, kPlenty);
  CHECK(set.captions == std::vector<std::vector<std::string>>{{"a red one", "red"}, {"blue"}});
  CHECK(color_of(set.pixels[1]) == std::vector{0, 0, 250});
  const auto failure = [&](const std::string& line) {
    write_below(folder.path(), "captions.txt", "red/1.png\tred\n" + line);
    return captions_failure(folder.path());
  };
  CHECK_THAT(
      failure("red/9.png\tgone"),
      ContainsSubstring("captions.txt:2: ") && ContainsSubstring("found no file 'red/9.png'"));
  for (const char* line : {"red/1.png", "\tred", "red/1.png\t", "red/1.png red"}) {
    CHECK_THAT(failure(line), ContainsSubstring("captions.txt:2: expected an image's path, a tab"));
  }
  for (const char* line : {"../1.png\tout", "/etc/passwd\tout", "red/../../x\tout"}) {
    CHECK_THAT(failure(line), ContainsSubstring("expected a path within the folder"));
  }
  write_below(folder.path(), "captions.txt", "\n\n");
  CHECK_THAT(captions_failure(folder.path()), ContainsSubstring("found none in"));
}

TEST_CASE("captions are rows of tokens, cut or filled to their length", "[tools][images]") {
  const CaptionText text({{"abc"}, {"c", "b"}}, 3);
  CHECK(text.vocabulary() == 5);
  const at::Tensor tokens = text.of_images(at::arange(2), generator_of(0, 0, Drawn::Captions));
  REQUIRE(tokens.sizes() == at::IntArrayRef({2, 3}));
  CHECK(tokens[0][0].item().toLong() == 1);
  CHECK(tokens[0][1].item().toLong() == 2);
  CHECK(tokens[0][2].item().toLong() == 4);
  CHECK(tokens[1][0].item().toLong() >= 2);
  CHECK(tokens[1][1].item().toLong() == 4);
  CHECK(tokens[1][2].item().toLong() == 0);
}

TEST_CASE("what a step trains on follows from seed and step, and none is evaluated (ED-1, ED-2)",
          "[tools][images]") {
  std::vector<std::int64_t> classes(25, 0);     // two of them are held out
  classes.insert(classes.end(), {1, 1, 1, 2});  // one of class 1, none of class 2
  const ExampleDraw draw(classes);
  const auto numbers = [](const at::Tensor& index) {
    const auto* first = index.const_data_ptr<std::int64_t>();
    return std::multiset<std::int64_t>(first, first + index.numel());
  };
  CHECK(at::equal(draw.of_step(3, 7, 20), draw.of_step(3, 7, 20)));
  CHECK_FALSE(at::equal(draw.of_step(3, 7, 20), draw.of_step(3, 8, 20)));
  CHECK_FALSE(at::equal(draw.of_step(3, 7, 20), draw.of_step(4, 7, 20)));
  const std::multiset<std::int64_t> trained = numbers(draw.of_step(0, 0, 26));
  CHECK(std::set(trained.begin(), trained.end()).size() == 26);
  CHECK(numbers(draw.of_step(0, 0, 52)).count(0) == 2);
  REQUIRE(draw.has_evaluation());
  CHECK(numbers(draw.of_evaluation(0, 3)) == std::multiset<std::int64_t>{9, 19, 27});
  for (const std::int64_t held_out : {9, 19, 27}) {
    CHECK(trained.count(held_out) == 0);
  }
  CHECK_FALSE(ExampleDraw({0, 1, 2}).has_evaluation());
}

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

}  // namespace stagecraft::tools
