/// Tests `stagecraft schedule fix`: one exchange, several exchanges, wrong numbers, columns.

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kFixed =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";
// 0B0 is in the column of 1B0, which it needs.
constexpr const char* kFixableArray =
    "0F0 0F1 0B0 .   .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";
constexpr const char* kFixableList =
    "@form list\n"
    "0F0 0B0 0F1 0B1\n"
    "1F0 1F1 1B0 1B1\n";

/// Returns the result of fix, whose schedule must pass `check`.
CommandResult fixed(const std::string& text) {
  const CommandResult result = run_schedule({"fix", "-"}, text);
  CAPTURE(text, result.out, result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(run_schedule({"check", "-"}, result.out).exit_code == 0);
  return result;
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace

TEST_CASE("fix exchanges cells until nothing waits forever", "[tools][schedule][fix]") {
  // Two pipelines in one file each have their own deadlock.
  const CommandResult two = fixed(
      "@form list\n@edges 0-1,2-3\n"
      "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n"
      "2F0 2B0 2F1 2B1\n3F0 3F1 3B0 3B1\n");
  CHECK(lines(two.err) == 2);
  CHECK_THAT(two.err, ContainsSubstring("of row 0") || ContainsSubstring("of row 1"));
  CHECK_THAT(two.err, ContainsSubstring("of row 2") || ContainsSubstring("of row 3"));
}

TEST_CASE("fix lays an array out again where columns are too early", "[tools][schedule][fix]") {
  const CommandResult result = fixed("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  CHECK(result.out ==
        "0F0 0F1 .   0B0 .   0B1\n"
        ".   1F0 1B0 1F1 1B1 .\n");
  CHECK(result.err == "laid out the columns again: 6 cells moved, and each row kept its order\n");
}

TEST_CASE("fix exchanges cells of an array before it lays it out", "[tools][schedule][fix]") {
  const CommandResult result = fixed(
      "@edges 0-1,2-3\n"
      "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n"
      "2F0 2B0 2F1 2B1\n3F0 3F1 3B0 3B1\n");
  CHECK(lines(result.err) == 3);
  CHECK_THAT(result.err, ContainsSubstring("laid out the columns again"));
  CHECK_THAT(result.out, !ContainsSubstring("@form list"));
}

TEST_CASE("one task twice and its neighbor missing is one wrong number", "[tools][schedule][fix]") {
  const CommandResult second = fixed("@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B0\n");
  CHECK(second.err ==
        "wrote 1B1 for 1B0 (row 1, position 3): 1B0 was there twice and 1B1 was missing\n");
  CHECK_THAT(second.out, ContainsSubstring("1F0 1B0 1F1 1B1"));
  // Only the first cell can be wrong: 0B0 needs 0F0.
  const CommandResult first = fixed("@form list\n0F1 0B0 0F1 0B1\n");
  CHECK_THAT(first.out, ContainsSubstring("0F0 0B0 0F1 0B1"));
  // The wrong number is in a group, and on a half of a backward.
  CHECK_THAT(fixed("@form list\n0F0 0F1|0I0 0W0 0I0 0W1\n").out,
             ContainsSubstring("0F1|0I0 0W0 0I1 0W1"));
}

TEST_CASE("a number that no other task has is repaired", "[tools][schedule][fix]") {
  const std::string wrong = "0F0 0F1 0F2 0B0 .   0B1 .   0B2\n.   1F0 1B0 1F1 1B1 1F3 1B2 .\n";
  const CommandResult result = fixed(wrong);
  CHECK(result.err ==
        "wrote 1F2 for 1F3 (row 1, column 5): 1F3 was alone with its number and 1F2 was missing\n");
  CHECK_THAT(run_schedule({"check", "-"}, wrong).err,
             ContainsSubstring("V05 row 1 column 5 (1F3): no other task is of stage 1 and "
                               "microbatch 3, and 1F2 is missing") &&
                 ContainsSubstring("repair: write 1F2 for 1F3 (row 1, column 5); ") &&
                 !ContainsSubstring("V09"));
}

TEST_CASE("fix that made no step tells the violations that check shows",
          "[tools][schedule][fix][bad-input]") {
  const std::string wrong = "@microbatches 2\n0F0 0F1 .   0B0 .   0B1\n.   1F0 1B0 1F5 1B6 .\n";
  const CommandResult fix = run_schedule({"fix", "-"}, wrong);
  const std::string check = run_schedule({"check", "-"}, wrong).err;
  CHECK(fix.exit_code == 1);
  const std::string first = check.substr(check.find("\nV") + 1);
  CHECK_THAT(fix.err, ContainsSubstring("the first: " + first.substr(0, first.find('\n')) + ";"));
  std::size_t violations = 0;
  for (std::size_t at = 0; (at = check.find("\nV", at)) != std::string::npos; ++at) {
    ++violations;
  }
  CHECK_THAT(fix.err, ContainsSubstring(fmt::format("{} violations remain", violations)));
}

TEST_CASE("where no exchange lets the rows run further none is made",
          "[tools][schedule][fix][bad-input]") {
  // Both rows begin with a backward.
  const CommandResult result =
      run_schedule({"fix", "-"}, "@form list\n0B0 0B1 0F0 0F1\n1B0 1B1 1F0 1F1\n");
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("no repair is known") && ContainsSubstring("V29"));
}

TEST_CASE("two tasks missing are no wrong number", "[tools][schedule][fix][bad-input]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/out.txt";
  const CommandResult result =
      run_schedule({"fix", "-", "-o", file}, "@form list\n@microbatches 3\n0F0 0F1 0F2 0B0 0B0\n");
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, ContainsSubstring("no repair is known") && ContainsSubstring("V08"));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("fix tells the steps that it made though they were not enough",
          "[tools][schedule][fix][bad-input]") {
  const CommandResult result =
      run_schedule({"fix", "-"}, "@form list\n0F0 0B0 0F1 0B0\n1F0 1F1 1B0\n");
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("wrote 0B1 for 0B0") && ContainsSubstring("V10"));
}

TEST_CASE("fix makes the exchange that check proposes", "[tools][schedule][fix]") {
  const CommandResult list = run_schedule({"fix", "-"}, kFixableList);
  CHECK(list.exit_code == 0);
  CHECK(list.out ==
        "@form list\n"
        "0F0 0F1 0B0 0B1\n"
        "1F0 1F1 1B0 1B1\n");
  CHECK_THAT(list.err, ContainsSubstring("exchanged 0B0 and 0F1 of row 0"));
  const CommandResult array = run_schedule_line("fix - | check -", kFixableArray);
  CHECK(array.exit_code == 0);
  CHECK(array.out ==
        "0F0 0F1 .   0B0 .   0B1\n"
        ".   1F0 1B0 1F1 1B1 .\n");
}

TEST_CASE("fix leaves a valid schedule as it is", "[tools][schedule][fix]") {
  const CommandResult result = run_schedule({"fix", "-"}, kFixed);
  CHECK(result.exit_code == 0);
  CHECK(result.out == kFixed);
  CHECK_THAT(result.err, ContainsSubstring("nothing to repair"));
}

TEST_CASE("fix says when it knows no further step, and writes nothing", "[tools][schedule][fix]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/out.txt";
  check_message(run_schedule({"fix", "-", "-o", file}, "0F0 .\n"), 1, {"no repair", "V10"});
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("fix names what else helps", "[tools][schedule][fix]") {
  check_message(run_schedule({"fix", "-"}, "0F0,0B0\n1RECV_F0,1F0,1B0\n"),
                1,
                {"communication", "--to pytorch-comms"});
}

}  // namespace stagecraft::tests
