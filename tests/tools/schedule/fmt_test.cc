/// Tests `stagecraft schedule fmt`: a file in its usual layout, with its comments.

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {

using Catch::Matchers::ContainsSubstring;

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
  CHECK_THAT(more.err, ContainsSubstring("also holds replicate directives"));
}

}  // namespace stagecraft::tests
