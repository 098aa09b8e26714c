#include "stagecraft/base/printable.h"

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

TEST_CASE("text of any language remains as it is", "[base]") {
  const std::string text = "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 'a\\b' ~";
  CHECK(printable(text) == text);
  CHECK(printable("") == "");
}

TEST_CASE("control characters are written as numbers", "[base]") {
  CHECK(printable(std::string_view("\x1b[31m\0\x7f", 7)) == "\\x1b[31m\\x00\\x7f");
  CHECK(printable("\xC2\x9B"
                  "31m") == "\\xc2\\x9b31m");
  CHECK(printable("a\n\tb\r") == "a\\x0a\\x09b\\x0d");
  CHECK(printable("a\n\tb\r", "\n\t") == "a\n\tb\\x0d");
}

TEST_CASE("bytes that are no UTF-8 are written as numbers", "[base][bad-input]") {
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable("caf\xC3") == "caf\\xc3");              // cut off
  CHECK(printable("\xE2\x82") == "\\xe2\\x82");           // likewise
  CHECK(printable("\xC0\xAF") == "\\xc0\\xaf");           // too long a form of '/'
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // half of a surrogate
  CHECK(printable("\xF5\x80\x80\x80") == "\\xf5\\x80\\x80\\x80");
  const std::string once = printable("\x1b\xff");
  CHECK(printable(once) == once);
}

TEST_CASE("no message of an error has raw bytes of what it is about", "[base][bad-input]") {
  const Error error(Errc::ScheduleParse, "line 1: '\x1b[2J\xff'\nline 2: 'caf\xC3\xA9'");
  CHECK(error.message() == "line 1: '\\x1b[2J\\xff'\nline 2: 'caf\xC3\xA9'");
  CHECK(Error(error.code(), error.text()).message() == error.message());
}

TEST_CASE("the beginning of a text ends between characters", "[base]") {
  CHECK(beginning_of("abc", 2) == "ab");
  CHECK(beginning_of("abc", 3) == "abc");
  CHECK(beginning_of("abc", 9) == "abc");
  CHECK(beginning_of("a\xC3\xA9z", 2) == "a");
  CHECK(beginning_of("a\xC3\xA9z", 3) == "a\xC3\xA9");
  CHECK(beginning_of("\xE2\x82\xAC", 2).empty());
}

}  // namespace stagecraft
