/// Tests the layout of help: no line is wider than its page, and examples stay as they are.

#include "stagecraft/tools/help/wrapped_text.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"
#include "stagecraft/tools/common/console.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::StartsWith;

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, line.size());
  }
  return widest;
}

TEST_CASE("a text is wrapped at its width, and an indented line stays", "[tools][help]") {
  CHECK(wrapped_text("one two three\n", 7) == "one two\nthree\n");
  CHECK(wrapped_text("one two three", 13) == "one two three\n");
  CHECK(wrapped_text("\none\n  an example\n", 4) == "\none\n  an example\n");
  CHECK(wrapped_text("unbreakable", 4) == "unbreakable\n");
  CHECK(wrapped_text("", 10).empty());
}

TEST_CASE("an entry has its text in a column, below a label that is too long", "[tools][help]") {
  CHECK(wrapped_entry("-a", "one two three", 6, 30) == "  -a  one two three\n");
  CHECK(wrapped_entry("-a", "one two three four five", 6, 26) ==
        "  -a  one two three four\n      five\n");
  CHECK(wrapped_entry("--abc", "one", 6, 30) == "  --abc\n      one\n");
  // A page without room for a second column has one of 20 letters.
  CHECK(wrapped_entry("-a", "one two three four five", 6, 1) ==
        wrapped_entry("-a", "one two three four five", 6, 26));
}

TEST_CASE("help of a group and of a command keep their page", "[tools][help]") {
  CHECK(widest_line(tests::run_schedule({"--help"}).out) <= help_width());
  CHECK(widest_line(tests::run_schedule({"compare", "--help"}).out) <= help_width());
}

TEST_CASE("help COMMAND prints what COMMAND --help prints", "[tools][help]") {
  const tests::CommandResult made = tests::run_schedule({"make", "--help"});
  const tests::CommandResult asked = tests::run_schedule({"help", "make"});
  CHECK(asked.exit_code == 0);
  CHECK_THAT(asked.out, StartsWith("Writes the schedule of a builder."));
  CHECK(asked.out == made.out);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"help"}, {"help", "help"}, {"help", "--help"}}) {
    CHECK(tests::run_schedule(words).out == tests::run_schedule({"--help"}).out);
  }
  tests::check_message(tests::run_schedule({"help", "mkae"}), 2, {"'mkae'", "did you mean make?"});
}

}  // namespace
}  // namespace stagecraft::tools
