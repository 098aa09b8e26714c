#include "stagecraft/tools/images/image_set.h"

#include <filesystem>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/images/colors.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::made_jpeg;
using tests::made_png;
using tests::write_below;

constexpr double kPlenty = 1e9;

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

TEST_CASE("the middle of an image is what stays of it", "[tools][images]") {
  Pixels wide{.height = 2, .width = 6, .rgb = std::vector<std::uint8_t>(36)};
  for (std::size_t i = 0; i < 36; ++i) {
    const std::size_t column = i / 3 % 6;
    wide.rgb[i] = column == 2 || column == 3 ? 200 : 10;
  }
  CHECK(color_of(square_of(wide, 2)) == std::vector{200, 200, 200});
  CHECK(color_of(square_of(wide, 5)) == std::vector{200, 200, 200});
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

}  // namespace
}  // namespace stagecraft::tools
