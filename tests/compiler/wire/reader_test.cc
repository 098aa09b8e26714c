/// Tests that a Reader returns the values that a Writer wrote, and refuses all other bytes.
#include "stagecraft/compiler/wire/reader.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/wire/writer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::wire {
namespace {

using Catch::Matchers::ContainsSubstring;

template <class Read>
std::string fault_of(const std::string& bytes, Read&& read) {
  return refusal(
      [&] {
        Reader in(bytes);
        read(in);
      },
      Errc::WireFormat);
}

std::string fault_of(const std::string& bytes) {
  return fault_of(bytes, [](Reader&) {});
}

TEST_CASE("values come back in their order", "[compiler][wire]") {
  Writer out;
  out.array(7);
  out.nil();
  out.boolean(true);
  out.integer(-7);
  out.natural(7);
  out.text("a text\0 with a zero");
  out.array(2);
  out.integer(1);
  out.text("");
  out.map(1);
  out.natural(1);
  out.boolean(false);
  const std::string bytes = out.take();
  CHECK(out.take().empty());
  Reader in(bytes);
  CHECK(in.array() == 7);
  CHECK(in.take_nil());
  CHECK_FALSE(in.take_nil());
  CHECK(in.boolean());
  CHECK(in.integer() == -7);
  CHECK(in.natural() == 7);
  CHECK(in.text() == "a text\0 with a zero");
  CHECK(in.array() == 2);
  CHECK(in.integer() == 1);
  CHECK(in.text().empty());
  CHECK(in.map() == 1);
  CHECK(in.natural() == 1);
  CHECK_FALSE(in.boolean());
  CHECK_NOTHROW(in.end());
}

TEST_CASE("a text may be empty, also as the only value", "[compiler][wire]") {
  Writer out;
  out.text("");
  const std::string bytes = out.take();
  Reader in(bytes);
  CHECK(in.text().empty());
  in.end();
}

TEST_CASE("WW-1: numbers keep all their bits", "[compiler][wire]") {
  const std::vector<double> numbers{0.0, -0.0, 1.0, -3.0, 0.1, std::nan(""), HUGE_VAL, -HUGE_VAL};
  const std::vector<std::int64_t> integers{0,
                                           -1,
                                           127,
                                           128,
                                           -128,
                                           std::numeric_limits<std::int64_t>::min(),
                                           std::numeric_limits<std::int64_t>::max()};
  Writer out;
  out.array(numbers.size() + integers.size() + 1);
  for (const double number : numbers) {
    out.number(number);
  }
  for (const std::int64_t integer : integers) {
    out.integer(integer);
  }
  out.natural(std::numeric_limits<std::uint64_t>::max());
  const std::string bytes = out.take();
  Reader in(bytes);
  in.array_of(numbers.size() + integers.size() + 1, "the numbers");
  for (const double number : numbers) {
    CHECK(std::bit_cast<std::uint64_t>(in.number()) == std::bit_cast<std::uint64_t>(number));
  }
  for (const std::int64_t integer : integers) {
    CHECK(in.integer() == integer);
  }
  CHECK(in.natural() == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("a value of another kind is refused, with both kinds", "[compiler][wire]") {
  Writer out;
  out.text("x");
  const std::string text = out.take();
  CHECK_THAT(fault_of(text, [](Reader& in) { (void)in.integer(); }),
             ContainsSubstring("at value 1 of 1: expected an integer, found a text"));
  CHECK_THAT(fault_of(text, [](Reader& in) { (void)in.boolean(); }),
             ContainsSubstring("expected true or false"));
  CHECK_THAT(fault_of(text, [](Reader& in) { in.array_of(2, "a pair"); }),
             ContainsSubstring("expected an array"));
  CHECK_THAT(fault_of(text, [](Reader& in) { in.end(); }), ContainsSubstring("more values"));
  CHECK_THAT(fault_of(text,
                      [](Reader& in) {
                        (void)in.text();
                        (void)in.map();
                      }),
             ContainsSubstring("expected a map, found the end"));
  out.integer(-1);
  CHECK_THAT(fault_of(out.take(), [](Reader& in) { (void)in.natural(); }),
             ContainsSubstring("the number -1 does not fit"));
  out.natural(std::numeric_limits<std::uint64_t>::max());
  CHECK_THAT(fault_of(out.take(), [](Reader& in) { (void)in.integer(); }),
             ContainsSubstring("does not fit"));
  out.array(3);
  for (int i = 0; i < 3; ++i) {
    out.nil();
  }
  CHECK_THAT(fault_of(out.take(), [](Reader& in) { in.array_of(2, "a pair"); }),
             ContainsSubstring("a pair has 2 values, not 3"));
}

TEST_CASE("WR-1, WR-2: bytes that claim too much are refused before anything is read",
          "[compiler][wire][hostile]") {
  CHECK_THAT(fault_of(""), ContainsSubstring("there are none"));
  CHECK_THAT(fault_of(std::string("\xdd\x7f\xff\xff\xff", 5)),
             ContainsSubstring("its lists claim 2147483647 values or more, and it has 5 bytes"));
  CHECK_THAT(fault_of(std::string("\xdf\x00\x00\x00\x09", 5)), ContainsSubstring("claim 18"));
  CHECK_THAT(fault_of(std::string(40, '\x91') + '\xc0'), ContainsSubstring("deeper than 32"));
  CHECK_THAT(fault_of("\xa5xy"), ContainsSubstring("end within a value"));
  CHECK_THAT(fault_of("\xc1"), ContainsSubstring("begins no value"));
  CHECK_THAT(fault_of(std::string("\xca\x00\x00\x00\x00", 5)), ContainsSubstring("32 bits"));
  CHECK_THAT(fault_of("\xc4\x01x"), ContainsSubstring("binary data"));
  CHECK_THAT(fault_of("\xc0\xc0"), ContainsSubstring("1 bytes follow its end"));
}

}  // namespace
}  // namespace stagecraft::wire
