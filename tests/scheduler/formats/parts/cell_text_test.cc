#include "stagecraft/scheduler/formats/parts/cell_text.h"

#include <limits>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::formats {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

std::string cell_fault(std::string_view text, std::size_t row = 0) {
  return refusal([&] { (void)parse_cell(text, row, {2, 5}); }, Errc::ScheduleParse);
}

TEST_CASE("an offset has the line and the column that an editor shows", "[scheduler][formats]") {
  const Lines lines("ab\n\ncde");
  const auto is_at = [&](std::size_t offset, std::size_t line, std::size_t column) {
    const Location found = lines.location(offset);
    return found.line == line && found.column == column;
  };
  CHECK(is_at(0, 1, 1));
  CHECK(is_at(2, 1, 3));  // the end of its line
  CHECK(is_at(3, 2, 1));
  CHECK(is_at(4, 3, 1));
  CHECK(is_at(7, 3, 4));  // the end of the text
  CHECK(is_at(1, 1, 2));  // also after a later offset
  CHECK(is_at(6, 3, 3));
}

TEST_CASE("a number ends where its digits end", "[scheduler][formats]") {
  std::string_view text = "12F3";
  CHECK(leading_number(text) == 12);
  CHECK(text == "F3");
  CHECK_FALSE(leading_number(text));
  CHECK(text == "F3");
  text = "99999999999x";
  CHECK(leading_number(text) == std::numeric_limits<int>::max());
  CHECK(text == "x");
  for (const std::string_view none : {"", "-1", "+1", " 1", "-99999999999"}) {
    text = none;
    CHECK_FALSE(leading_number(text));
    CHECK(text == none);
  }
  CHECK(whole_number("007") == 7);
  CHECK_FALSE(whole_number(""));
  CHECK_FALSE(whole_number("7 "));
  CHECK_FALSE(whole_number("-7"));
}

TEST_CASE("quoted text is short and printable", "[scheduler][formats]") {
  CHECK(quoted("0F\t\xff") == "'0F\\x09\\xff'");
  CHECK(quoted(std::string(40, 'a')) == "'" + std::string(40, 'a') + "'");
  CHECK(quoted(std::string(41, 'a')) == "'" + std::string(40, 'a') + "...'");
  CHECK(trim(" \t0F0 1F0\r") == "0F0 1F0");
  CHECK(trim(" \t\r").empty());
}

TEST_CASE("a cell is a task, a group, or nothing", "[scheduler][formats]") {
  const Location at{1, 1};
  CHECK(parse_cell(".", 0, at).idle());
  CHECK(parse_cell("12B34", 0, at) == cells::B(12, 34));
  CHECK(parse_cell("F3", 7, at) == cells::F(7, 3));  // the row's own stage
  CHECK(parse_cell("1U", 0, at) == cells::U(1));
  CHECK(parse_cell("U", 4, at) == cells::U(4));
  CHECK(parse_cell("0I1", 0, at) == cells::I(0, 1));
  CHECK(parse_cell("0W1", 0, at) == cells::W(0, 1));
  const Cell group = parse_cell("0F7|7B3", 0, at);
  REQUIRE(group.tasks().size() == 2);
  CHECK(group.is_group());
  CHECK(to_string(group.tasks()[1]) == "7B3");
}

TEST_CASE("text that is no cell is told with its place and its probable meaning",
          "[scheduler][formats][bad-input]") {
  for (const char* text :
       {"", "F", "0X0", "0F", "0F-1", "0F0xyz", "0x0", "what", "-1F0", "0 F0", "..", "9999"}) {
    CAPTURE(text);
    CHECK_THAT(cell_fault(text),
               ContainsSubstring("line 2, column 5: ") &&
                   ContainsSubstring("is not a cell; a cell is '.'"));
  }
  CHECK_THAT(cell_fault("0f3"), EndsWith("'0f3' is not a cell; kinds are capital letters: '0F3'"));
  CHECK_THAT(cell_fault("1B1x"),
             EndsWith("'1B1x' is not a cell; a cell ends with its microbatch: '1B1'"));
  CHECK_THAT(cell_fault("1b12,;"), EndsWith("a cell ends with its microbatch: '1B12'"));
  CHECK_THAT(cell_fault("2U1"), EndsWith("'2U1': an update has no microbatch; write 2U"));
}

TEST_CASE("the fault of a group is at its member", "[scheduler][formats][bad-input]") {
  CHECK_THAT(cell_fault("0F0|1X0"), ContainsSubstring("line 2, column 9: '1X0'"));
  CHECK_THAT(cell_fault("0F0|"), ContainsSubstring("line 2, column 9: ''"));
  CHECK_THAT(cell_fault("|0F0"), ContainsSubstring("line 2, column 5: ''"));
}

TEST_CASE("numbers beyond the limits of a schedule are refused",
          "[scheduler][formats][bad-input]") {
  const Location at{1, 1};
  CHECK_NOTHROW(parse_cell("65535F0", 0, at));
  for (const char* text : {"65536F0", "99999999999F0", "0F99999999999", "65536U"}) {
    CAPTURE(text);
    CHECK_THAT(cell_fault(text), ContainsSubstring("is too large: stages go up to 65535"));
  }
  CHECK_THAT(cell_fault("F0", 65536), ContainsSubstring("is too large"));
}

}  // namespace
}  // namespace stagecraft::formats
