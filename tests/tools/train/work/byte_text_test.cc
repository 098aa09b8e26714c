#include "stagecraft/tools/train/work/byte_text.h"

#include <ATen/ops/equal.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tools {
namespace {

std::string failure_of(const std::string& path, std::int64_t length) {
  return refusal([&] { (void)ByteText::read(path, length); }, Errc::UsageFile);
}

}  // namespace

TEST_CASE("a text that is too long for the memory there is is refused", "[tools][text]") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("text", std::string(3 << 20U, 'x'));
  CHECK(ByteText::read(path, 8, 3 << 20U).size() == 3 << 20U);
  try {
    (void)ByteText::read(path, 8, 1 << 20U);
    FAIL("was read");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::DeviceOutOfMemory);
    CHECK_THAT(error.message(),
               Catch::Matchers::ContainsSubstring("more than 1.0 MiB at '" + path));
  }
}

TEST_CASE("the vocabulary is the distinct bytes of the text, in byte order", "[tools][text]") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("text",
                                        "cab\xff"
                                        "cabcab");
  const ByteText text = ByteText::read(path, 3);
  CHECK(text.vocabulary() == 4);
  CHECK(text.size() == 10);
  const TextBatch batch = text.batch(0, 0, 64);
  CHECK(batch.tokens.min().item().toLong() == 0);
  CHECK(batch.tokens.max().item().toLong() <= 3);
}

TEST_CASE("targets are the tokens one byte later", "[tools][text]") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("text", "abcdefghijklmnopqrstuvwxyz");
  const TextBatch batch = ByteText::read(path, 5).batch(7, 3, 8);
  REQUIRE(batch.tokens.sizes() == at::IntArrayRef({8, 5}));
  // In the alphabet the next letter is the next token.
  CHECK(at::equal(batch.tokens.add(1), batch.targets));
}

TEST_CASE("a batch depends on seed and step alone", "[tools][text]") {
  const ByteText text = ByteText::read("/usr/share/common-licenses/GPL-3", 16);
  CHECK(at::equal(text.batch(0, 5, 8).tokens, text.batch(0, 5, 8).tokens));
  CHECK_FALSE(at::equal(text.batch(0, 5, 8).tokens, text.batch(0, 6, 8).tokens));
  CHECK_FALSE(at::equal(text.batch(0, 5, 8).tokens, text.batch(1, 5, 8).tokens));
}

TEST_CASE("a text that cannot be used is refused with the reason", "[tools][text]") {
  const tests::TemporaryFolder folder;
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(failure_of(folder.path() + "/none", 8), ContainsSubstring("no file"));
  CHECK_THAT(failure_of(folder.path(), 8), ContainsSubstring("a directory"));
  CHECK_THAT(failure_of(folder.write("empty", ""), 8), ContainsSubstring("an empty file"));
  CHECK_THAT(failure_of(folder.write("short", "123456789"), 8),
             ContainsSubstring("at least 10 bytes"));
  CHECK_NOTHROW(ByteText::read(folder.write("enough", "1234567890"), 8));
}

}  // namespace stagecraft::tools
