#include "stagecraft/tools/schedule/input/strategy_input.h"

#include <sstream>
#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tools/dag/dag.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kTwoCopies =
    "# two copies of two stages\n"
    "split {} dim=MB n=2\n"
    "place {PP:0} on [0,2]\n"
    "place {PP:1} on [1,3]\n";

/// Returns the message for a file that is no strategy.
std::string no_strategy(const std::string& text, const std::string& path = "s") {
  return refusal([&] { (void)strategy_in(text, path); }, Errc::ScheduleParse);
}

TEST_CASE("a strategy is read from a file, from standard input and in Piper's form",
          "[tools][strategy]") {
  const tests::TemporaryFolder folder;
  std::istringstream in(kTwoCopies);
  std::ostringstream out, err;
  Console console{in, out, err};
  const Strategy read = read_strategy("-", "--strategy", console);
  CHECK(read.directives().size() == 3);
  CHECK(read_strategy(folder.write("s", kTwoCopies), "--strategy", console) == read);
  const tests::CommandResult piper =
      tests::run_in_test(&dag, {"convert", "-", "--to", "piper"}, kTwoCopies);
  REQUIRE(piper.exit_code == 0);
  CHECK(ranks_of(strategy_in(piper.out, "p")) == 4);
  CHECK_THAT(refusal([&] { (void)read_strategy("/none", "--strategy", console); }, Errc::UsageFile),
             ContainsSubstring("--strategy expects a readable file, found no file at '/none'"));
}

TEST_CASE("the ranks of a strategy are those of its places, each once", "[tools][strategy]") {
  CHECK(ranks_of(strategy_in(kTwoCopies, "s")) == 4);
  CHECK(ranks_of(strategy_in("place {PP:0} on [0,1]\nplace {PP:1} on [0,1]\n", "s")) == 2);
  CHECK(ranks_of(strategy_in("split {} dim=MB n=2\n", "s")) == 0);
}

TEST_CASE("a schedule in the place of a strategy is refused with its format",
          "[tools][strategy][bad-input]") {
  const auto looks_like = [](const std::string& format) {
    return ContainsSubstring("'s' looks like a schedule (format " + format +
                             "), expected a strategy; train --schedule");
  };
  CHECK_THAT(no_strategy("0F0 0B0\n"), looks_like("text"));
  CHECK_THAT(no_strategy("# rows\n@edges 0-1\n.  1F0\n"), looks_like("text"));
  CHECK_THAT(no_strategy("0F0,0B0\n"), looks_like("pytorch"));
  CHECK_THAT(no_strategy("{\"rows\": []}"), looks_like("json"));
  CHECK_THAT(no_strategy(std::string("\x7f\x45\x4c\x46\0", 5)),
             ContainsSubstring("'s' is a binary file, expected a strategy"));
}

TEST_CASE("a wrong directive is reported with its file, line and column",
          "[tools][strategy][bad-input]") {
  CHECK_THAT(no_strategy("place {PP:0} on [0]\nplace {PP:1} on\n", "-"),
             ContainsSubstring("standard input: line 2, column 16: expected '['"));
  CHECK_THAT(no_strategy("place {PP:0} on [0]\n0F0 0B0\n", "own.strategy"),
             ContainsSubstring("'own.strategy': line 2"));
}

TEST_CASE("a mistyped directive is told as one, not as a cell of a schedule",
          "[tools][dag][bad-input]") {
  CHECK_THAT(no_strategy("# two\nsplt {} n=2\nplace {PP:0} on [0]\n"),
             ContainsSubstring("line 2, column 1: 'splt' is no directive; did you mean split?"));
  CHECK_THAT(no_strategy("plce {PP:0} on [0]\n"),
             ContainsSubstring("'plce'") && ContainsSubstring("did you mean place?"));
}

}  // namespace
}  // namespace stagecraft::tools
