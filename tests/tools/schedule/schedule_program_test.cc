/// Tests `stagecraft schedule` as a shell runs it: pipes, exit statuses, terminals and full disks.

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kLate =
    "0F0 0F1 0B0 .   .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";

/// Runs a line of bash in which `schedule` is the command.
CommandResult run_shell(const std::string& line, const std::string& folder = "") {
  const std::string function = std::string("set -o pipefail; schedule() { '") + STAGECRAFT_COMMAND +
                               "' schedule \"$@\"; }; ";
  return run_command({"bash", "-c", function + line}, folder);
}

/// Does the same on a terminal with this many columns.
CommandResult run_terminal(const std::string& words, int columns, const std::string& folder) {
  const std::string line =
      "stty cols " + std::to_string(columns) + "; '" + STAGECRAFT_COMMAND + "' schedule " + words;
  return run_command({"env", "-u", "NO_COLOR", "TERM=xterm", "script", "-qec", line, "/dev/null"},
                     folder);
}

/// Returns the most characters of a line.
std::size_t page_width(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, line.find_last_not_of("\r") + 1);
  }
  return widest;
}

}  // namespace

TEST_CASE("make, check and simulate can be piped", "[tools][schedule]") {
  const CommandResult result = run_shell(
      "schedule make 1f1b --devices 4 --microbatches 8 | schedule check - | "
      "schedule simulate - --json");
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  const auto answer = nlohmann::json::parse(result.out);
  CHECK(answer.at("columns") == 22);
  CHECK(answer.at("makespan") == 33);
  CHECK(answer.at("hash") == "e668f443e2c0cd9d");
}

TEST_CASE("the command without its runtime plans, and says what it lacks to train",
          "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string alone = folder.path() + "/bin/stagecraft";
  std::filesystem::create_directory(folder.path() + "/bin");
  std::filesystem::copy_file(STAGECRAFT_COMMAND, alone);
  CHECK(run_command({alone, "schedule", "list"}).exit_code == 0);
  for (const char* word :
       {"train", "eval", "predict", "import", "profile", "doctor", "launch", "worker"}) {
    const CommandResult result = run_command({alone, word, "--help"});
    CAPTURE(word, result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err,
               ContainsSubstring(folder.path() + "/libexec/stagecraft/stagecraft") &&
                   ContainsSubstring("No such file") && ContainsSubstring("all of Stagecraft"));
  }
}

TEST_CASE("a pipe with a broken schedule fails, and says why", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("late.txt", kLate);
  const CommandResult result =
      run_shell("schedule check - < late.txt | schedule simulate -", folder.path());
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("V22 row 0 column 2 (0B0)"));
  CHECK_THAT(result.err, ContainsSubstring("found nothing in standard input"));
}

TEST_CASE("standard input that cannot be read is told as that", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string from = GENERATE("< .", "<&-");
  CAPTURE(from);
  const CommandResult result = run_shell("schedule check - " + from, folder.path());
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("standard input cannot be read to its end"));
}

TEST_CASE("exit statuses: 0 valid, 1 violations, 2 unreadable", "[tools][schedule]") {
  const TemporaryFolder folder;
  (void)folder.write("late.txt", kLate);
  (void)folder.write("no.txt", "what is this\n");
  CHECK(run_shell("schedule fix late.txt -o good.txt && schedule check good.txt", folder.path())
            .exit_code == 0);
  CHECK(run_shell("schedule check late.txt", folder.path()).exit_code == 1);
  CHECK(run_shell("schedule check no.txt", folder.path()).exit_code == 2);
  CHECK(run_shell("schedule check none.txt", folder.path()).exit_code == 2);
  CHECK(run_shell("schedule diff good.txt late.txt", folder.path()).exit_code == 0);
  CHECK(run_shell("schedule make gpipe --devices 2 --microbatches 2 | schedule diff good.txt -",
                  folder.path())
            .exit_code == 1);
  CHECK(run_shell("schedule", folder.path()).exit_code == 2);
  CHECK(run_shell("schedule --help", folder.path()).exit_code == 0);
}

TEST_CASE("an output that is full is noticed", "[tools][schedule][bad-input]") {
  const CommandResult result = run_shell("schedule list > /dev/full");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, ContainsSubstring("standard output cannot be written"));
}

TEST_CASE("devices are written to, not replaced", "[tools][schedule]") {
  const CommandResult result =
      run_shell("schedule make 1f1b --devices 1 --microbatches 1 -o /dev/stdout");
  CHECK(result.exit_code == 0);
  CHECK(result.out == "0F0 0B0\n");
}

TEST_CASE("what is written to a descriptor comes behind what its file has", "[tools][schedule]") {
  const TemporaryFolder folder;
  const CommandResult result = run_shell(
      "echo first > log; schedule make 1f1b --devices 1 --microbatches 1 -o /dev/stdout >> log",
      folder.path());
  CHECK(result.exit_code == 0);
  CHECK(read_text_file(folder.path() + "/log") == "first\n0F0 0B0\n");
}

TEST_CASE("a file that a command writes is made beside its place, through links",
          "[tools][schedule]") {
  const TemporaryFolder folder;
  (void)folder.write("target", "old");
  const CommandResult result = run_shell(
      "chmod 640 target; ln -s target link; ln -s none dangling; "
      "schedule make 1f1b --devices 1 --microbatches 1 -o link && "
      "schedule make 1f1b --devices 1 --microbatches 1 -o dangling && "
      "stat -c '%n %a %F' target link && cat target none && ls",
      folder.path());
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "target 640 regular file\nlink 777 symbolic link\n0F0 0B0\n0F0 0B0\n"
        "dangling\nlink\nnone\ntarget\n");
}

TEST_CASE("help is as wide as the terminal, up to 100 columns, and 80 without one",
          "[tools][schedule][help]") {
  const auto width_at = [](int columns) {
    return page_width(run_terminal("compare --help", columns, "").out);
  };
  CHECK(width_at(60) <= 60);
  CHECK((width_at(90) <= 90 && width_at(90) > 80));
  CHECK((width_at(200) <= 100 && width_at(200) > 90));
  const std::size_t piped = page_width(run_shell("schedule compare --help | cat").out);
  CHECK((piped <= 80 && piped > 70));
}

TEST_CASE("a terminal gets colors and its own width, unless NO_COLOR is set", "[tools][schedule]") {
  const TemporaryFolder folder;
  (void)folder.write("late.txt", kLate);
  const CommandResult plain = run_terminal("check late.txt", 20, folder.path());
  CAPTURE(plain.out, plain.err);
  CHECK(plain.exit_code == 1);
  CHECK_THAT(plain.out, ContainsSubstring("\x1b["));
  const CommandResult piped = run_terminal("show late.txt | cat", 20, folder.path());
  CHECK_THAT(piped.out, ContainsSubstring("[0B0]") && !ContainsSubstring("\x1b["));
  const std::string line =
      std::string("stty cols 20; NO_COLOR=1 '") + STAGECRAFT_COMMAND + "' schedule check late.txt";
  const CommandResult colorless = run_command({"script", "-qec", line, "/dev/null"}, folder.path());
  CHECK_THAT(colorless.out, !ContainsSubstring("\x1b["));
  // 20 columns hold three cells, so the fourth begins a new block.
  CHECK_THAT(colorless.out, ContainsSubstring("\r\n     3   4   5\r\n"));
}

}  // namespace stagecraft::tests
