/// Tests what a command shows while it has nothing to print yet.
#include "stagecraft/tools/common/status_line.h"

#include <sstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the text of a command that does two things in turn.
std::string said(bool terminal, bool quiet) {
  std::istringstream in;
  std::ostringstream out, err;
  tools::Console console{.in = in, .out = out, .err = err, .out_is_terminal = terminal};
  {
    tools::StatusLine line(console, quiet);
    line.say("one ...");
    line.say("two ...");
  }
  CHECK(out.str().empty());
  return err.str();
}

}  // namespace

TEST_CASE("a terminal shows what is done now, and nothing of it in the end", "[tools][progress]") {
  CHECK(said(true, false) == "\rone ...\x1b[K\rtwo ...\x1b[K\r\x1b[K");
  CHECK(said(true, true).empty());
  CHECK(said(false, false).empty());
}

TEST_CASE("a dry run says what it is doing before it has anything to show", "[tools][progress]") {
  const std::string words =
      std::string("'") + STAGECRAFT_COMMAND + "' train --dry-run --ranks 2 --seq 16";
  const CommandResult terminal =
      run_command({"env", "TERM=xterm", "script", "-qec", words, "/dev/null"});
  CAPTURE(terminal.out, terminal.err);
  CHECK(terminal.exit_code == 0);
  CHECK_THAT(terminal.out,
             ContainsSubstring("\rcompiling the model ...\x1b[K") &&
                 ContainsSubstring("\rmaking the plans of 2 ranks ...\x1b[K\r\x1b[K"));
  const CommandResult pipe = run_command({"bash", "-c", words});
  CHECK(pipe.exit_code == 0);
  CHECK(pipe.err.empty());
}

}  // namespace stagecraft::tests
