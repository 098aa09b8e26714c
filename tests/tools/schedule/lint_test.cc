/// Tests `stagecraft schedule lint` and `fmt`: odd schedules, and schedules with odd text only.

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

TEST_CASE("a builder's schedule has nothing odd", "[tools][schedule]") {
  for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
    const CommandResult made =
        run_schedule({"make", name, "--devices", "3", "--microbatches", "6"});
    const CommandResult result = lint(made.out);
    CAPTURE(name, result.out, result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out == "nothing odd: 3 devices, 3 stages, 6 microbatches\n");
  }
}

TEST_CASE("what is legal but odd is told by its kind", "[tools][schedule]") {
  struct Case {
    const char* text;
    const char* kind;
    const char* told;
  };
  for (const Case& odd : {
           Case{"0F0 0F1 .   .   0B0 .   0B1\n.   1F0 1B0 1F1 .   1B1 .\n",
                "late-cells",
                "3 cells stand later"},
           Case{"0F0 0B0\n. .\n", "idle-rows", "row 1 has no task"},
           Case{"0F1 0F0 0B1 0B0\n", "microbatch-order", "0F"},
           Case{"0F0 0F1 0B0 0I1 0W1\n", "mixed-backwards", "stage 0 has whole backwards"},
           Case{"0F0 0I0 0W0 0F1 0I1 0W1\n", "joined-halves", "each W runs directly"},
           Case{"@frozen 0\n0F0 0B0\n", "surplus", "1 task does nothing"},
       }) {
    const CommandResult result = lint(odd.text);
    CAPTURE(odd.text, result.out, result.err);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.out, ContainsSubstring(std::string(odd.kind) + ": "));
    CHECK_THAT(result.out, ContainsSubstring(odd.told));
  }
  const auto json =
      nlohmann::json::parse(run_schedule({"lint", "-", "--json"}, "0F0 0I0 0W0 0F1 0I1 0W1\n").out);
  CHECK(json.at("oddities").at(0).at("kind") == "joined-halves");
}

TEST_CASE("lint refuses what breaks a rule", "[tools][schedule]") {
  const CommandResult result = lint("0F0 0F1 0B0\n");
  CHECK(result.exit_code != 0);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("V10"));
}

TEST_CASE("fmt writes a file as it is usually written, with its comments", "[tools][schedule]") {
  const CommandResult text = run_schedule(
      {"fmt", "-"}, "# mine\n@edges 0-1\n0F0   .  0B0 .# first\n  # between\n . 1F0 1B0\n# end\n");
  CAPTURE(text.out, text.err);
  CHECK(text.exit_code == 0);
  const CommandResult again = run_schedule({"fmt", "-"}, text.out);
  CHECK(again.out == text.out);
  CHECK_THAT(text.out, Catch::Matchers::StartsWith("# mine\n"));
  CHECK_THAT(text.out, ContainsSubstring("  # first\n# between\n"));
  CHECK_THAT(text.out, Catch::Matchers::EndsWith("# end\n"));
  CHECK(run_schedule({"fmt", "-"}, " 0F0,\"0F1\" ,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n").out ==
        "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(run_schedule({"fmt", "-"}, "@form list\n0F0  0B0\n").out == "@form list\n0F0 0B0\n");

  const std::string array =
      run_schedule_line("make zb-h1 --devices 2 --microbatches 2 --format jaxpp").out;
  CHECK(run_schedule({"fmt", "-"}, array).out == array);

  const CommandResult comms =
      run_schedule({"fmt", "-"}, "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n");
  CHECK(comms.exit_code == 2);
  CHECK_THAT(comms.err, ContainsSubstring("lists communication"));
  const CommandResult more = run_schedule({"fmt", "-"},
                                          R"([{"op": "place", "filter": {"PP": 0}, "devices": [0]},
          {"op": "replicate", "filter": {"PP": 0}, "devices": [0], "shard_params": true},
          {"op": "order", "filters": [[{"PP": 0, "PASS": "F"}], [{"PP": 0, "PASS": "B"}]]}])");
  CHECK(more.exit_code == 2);
  CHECK_THAT(more.err, ContainsSubstring("replicate and shard"));
}

}  // namespace stagecraft::tests
