#include "stagecraft/actors/launch/worker/worker_program.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("where a driver listens is said as HOST:PORT, with brackets around IPv6",
          "[actors][hosts][bad-input]") {
  const auto said = [](const std::string& text) {
    const WorkerProcessOptions options =
        parse_worker_arguments({"--join", text, "--credentials", "c"});
    return options.host + " " + std::to_string(options.port);
  };
  CHECK(said("node-a:7") == "node-a 7");
  CHECK(said("10.0.0.1:7") == "10.0.0.1 7");
  CHECK(said("[fd77::1]:7") == "fd77::1 7");
  for (const char* text : {"node-a", ":7", "fd77::1:7", "[]:7", "fd77::1"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(said(text), ContainsSubstring("[ADDRESS]:PORT of IPv6, found"));
  }
  for (const char* text : {"node-a:", "node-a:x", "node-a:70000", "[fd77::1]"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(said(text), ContainsSubstring("--join"));
  }
}

}  // namespace
}  // namespace stagecraft
