#include "stagecraft/base/log.h"

#include <string>

#include "stagecraft/tests/support/captured_stderr.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a log line is the phrase, then each field as name=value", "[base][log]") {
  CHECK(log_line(
            "step done",
            {{"rank", Rank(1)}, {"step", Step(7)}, {"ms", 12.5}, {"last", true}, {"bytes", 64U}}) ==
        "step done rank=1 step=7 ms=12.5 last=true bytes=64");
  CHECK(log_line("cluster ready", {}) == "cluster ready");
}

TEST_CASE("a value that could be mistaken for more fields is quoted and stays on one line",
          "[base][log]") {
  CHECK(log_line("worker failed", {{"why", "no memory"}}) == R"(worker failed why="no memory")");
  CHECK(log_line("worker failed", {{"why", std::string("a=\"b\"\nc")}}) ==
        R"(worker failed why="a=\"b\"\nc")");
  CHECK(log_line("worker failed", {{"why", ""}}) == R"(worker failed why="")");
}

TEST_CASE("warnings and errors reach standard error, one line each", "[base][log]") {
  std::string text;
  {
    const tests::CapturedStderr captured;
    log(Level::Warning, "peer is slow", {{"step", Step(2)}});
    log(Level::Error, "peer is lost");
    text = captured.text();
  }
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(text, ContainsSubstring("warning peer is slow step=2\n"));
  CHECK_THAT(text, ContainsSubstring("error peer is lost\n"));
}

}  // namespace
}  // namespace stagecraft
