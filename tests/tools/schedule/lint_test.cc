/// Tests `stagecraft schedule lint`: schedules that run and are unusual.

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

CommandResult lint(const std::string& text) {
  return run_schedule({"lint", "-"}, text);
}

}  // namespace

TEST_CASE("a builder's schedule has nothing unusual", "[tools][schedule]") {
  for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
    const CommandResult made =
        run_schedule({"make", name, "--devices", "3", "--microbatches", "6"});
    const CommandResult result = lint(made.out);
    CAPTURE(name, result.out, result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out == "nothing unusual: 3 devices, 3 stages, 6 microbatches\n");
  }
}

TEST_CASE("what is legal but unusual is named by its kind", "[tools][schedule]") {
  struct Case {
    const char* text;
    const char* kind;
    const char* told;
  };
  for (const Case& unusual : {
           Case{"0F0 0F1 .   .   0B0 .   0B1\n.   1F0 1B0 1F1 .   1B1 .\n",
                "late-cells",
                "3 cells stand later"},
           Case{"0F0 0B0\n. .\n", "idle-rows", "row 1 has no task"},
           Case{"0F1 0F0 0B1 0B0\n", "microbatch-order", "0F"},
           Case{"0F0 0F1 0B0 0I1 0W1\n", "mixed-backwards", "stage 0 has whole backwards"},
           Case{"0F0 0I0 0W0 0F1 0I1 0W1\n", "joined-halves", "each W runs directly"},
           Case{"@frozen 0\n0F0 0B0\n", "surplus", "1 task does nothing"},
       }) {
    const CommandResult result = lint(unusual.text);
    CAPTURE(unusual.text, result.out, result.err);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.out, ContainsSubstring(std::string(unusual.kind) + ": "));
    CHECK_THAT(result.out, ContainsSubstring(unusual.told));
  }
  const auto json =
      nlohmann::json::parse(run_schedule({"lint", "-", "--json"}, "0F0 0I0 0W0 0F1 0I1 0W1\n").out);
  CHECK(json.at("remarks").at(0).at("kind") == "joined-halves");
}

TEST_CASE("lint refuses what breaks a rule", "[tools][schedule]") {
  const CommandResult result = lint("0F0 0F1 0B0\n");
  CHECK(result.exit_code != 0);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("V10"));
}

}  // namespace stagecraft::tests
