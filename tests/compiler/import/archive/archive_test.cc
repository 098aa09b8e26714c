/// Tests archives that are damaged or lie about their sizes: each is refused or read, and none
/// makes the reader allocate by a number in it (AR-1).
#include "stagecraft/compiler/import/archive/archive.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/tests/compiler/import/made_archive.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::MadeArchive;
using testing::small_archive;

TEST_CASE("an archive has its records by name", "[compiler][import][archive]") {
  MadeArchive made = small_archive();
  made.records["data/other"] = "some bytes";
  const std::string bytes = made.bytes();
  Archive archive(bytes, "made.pt2");
  CHECK(archive.has("data/other"));
  CHECK(archive.text("data/other") == "some bytes");
  CHECK(std::ranges::count(archive.records(), "models/model.json") == 1);
  CHECK(archive.storage("data/other").nbytes() == 10);
  CHECK_THAT(refusal([&] { (void)archive.text("data/none"); }, Errc::UsageFile),
             ContainsSubstring("made.pt2: the record data/none is missing"));
}

TEST_CASE("a file is an archive or is refused", "[compiler][import][archive]") {
  CHECK_THAT(refusal([] { const Archive none("/nowhere/model.pt2"); }, Errc::UsageFile),
             ContainsSubstring("/nowhere/model.pt2: expected a file, found none"));
  CHECK_THAT(refusal([] { const Archive folder("/"); }, Errc::UsageFile),
             ContainsSubstring("expected a file, found a folder"));
  for (const std::string_view bytes : {"", "P", "not a model at all"}) {
    CAPTURE(bytes);
    CHECK_THAT(refusal([&] { const Archive text(bytes, "text"); }, Errc::UsageFile),
               ContainsSubstring("expected a ZIP archive"));
  }
  CHECK_THAT(refusal([] { const Archive text("PK", "short"); }, Errc::UsageFile),
             ContainsSubstring("the archive is damaged"));
}

TEST_CASE("an archive that ends early or has another byte is refused, or read",
          "[compiler][import]") {
  const std::string whole = small_archive().bytes();
  CHECK(read_exported_model(whole, "whole").unsupported.empty());
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    CAPTURE(size);
    CHECK_THROWS_AS(read_exported_model(std::string_view(whole).substr(0, size), "cut"), Error);
  }
  std::uint32_t random = 1;
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 3; ++k) {
      random = random * 1664525 + 1013904223;
      bytes[(random >> 8) % bytes.size()] = static_cast<char>(random >> 3);
    }
    CAPTURE(i);
    try {
      (void)read_exported_model(bytes, "flipped");
    } catch (const Error& error) {
      CHECK((error.code() == Errc::UsageFile || error.code() == Errc::CompileCapture));
    }
  }
}

TEST_CASE("a record that claims more than the file has is refused before it is read",
          "[compiler][import]") {
  const MadeArchive archive = small_archive();
  std::string bytes = archive.bytes();
  // In the directory's entry of the weight, the sizes are 22 bytes before the name.
  const std::string name = "data/weights/weight_";
  const std::size_t entry = bytes.rfind(name);
  const std::size_t start = bytes.rfind("PK\x01\x02", entry);
  for (int i = 0; i < 8; ++i) {
    bytes[start + 20 + static_cast<std::size_t>(i)] = i % 4 == 3 ? '\x7f' : '\xf0';
  }
  CHECK_THAT(refusal([&] { (void)read_exported_model(bytes, "lying"); }, Errc::UsageFile),
             ContainsSubstring("lying"));
  MadeArchive packed = small_archive();
  packed.records["data/weights/weight_3"] = std::string(1 << 16, 'a');
  packed.compressed = true;
  CHECK_THAT(refusal([&] { (void)packed.read(); }, Errc::UsageFile),
             ContainsSubstring("stored uncompressed"));
}

}  // namespace
}  // namespace stagecraft
