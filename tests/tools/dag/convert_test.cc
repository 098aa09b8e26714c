/// Tests `stagecraft dag convert`, and Piper's files as strategies.
#include <string>
#include <vector>

#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"
#include "stagecraft/tools/dag/dag.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

constexpr const char* kTwoPipelines =
    "split {} dim=MB n=2\nplace {PP:0} on [0,2]\nplace {PP:1} on [1,3]\n"
    "replicate {PP:0} on [0,2] reduce_stream=dp\nreplicate {PP:1} on [1,3] reduce_stream=dp\n";

CommandResult run_dag(const Words& words, const std::string& text) {
  return run_in_test(&tools::dag, words, text);
}

std::string output_of(const Words& words, const std::string& text) {
  const CommandResult result = run_dag(words, text);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

}  // namespace

TEST_CASE("a strategy is written for Piper and read from there", "[tools][dag][piper]") {
  const std::string piper = output_of({"convert", "-", "--to", "piper"}, kTwoPipelines);
  CHECK_THAT(piper, ContainsSubstring(R"("op": "replicate", "filter": {"PP": 1})"));
  CHECK(output_of({"convert", "-", "--to", "text"}, piper) == kTwoPipelines);
  CHECK(output_of({"show", "-", "--json"}, piper) ==
        output_of({"show", "-", "--json"}, kTwoPipelines));
}

TEST_CASE("a schedule is written as the strategy that it stands for", "[tools][dag][piper]") {
  const std::string schedule = run_schedule_line("make zb-h1 --devices 2 --microbatches 2").out;
  const std::string text = output_of({"convert", "-", "--to", "text"}, schedule);
  CHECK(parse_strategy(text).directives().size() == 5);
  CHECK(output_of({"show", "-", "--json"}, text) == output_of({"show", "-", "--json"}, schedule));
  const std::string piper = output_of({"convert", "-", "--to", "piper"}, schedule);
  CHECK(piper == run_schedule_line("convert - --to piper", schedule).out);
  // As a schedule, a file of Piper is its rows.
  CHECK(output_of({"convert", "-", "--from", "piper", "--to", "text"}, piper) == text);
}

TEST_CASE("what cannot be written is told", "[tools][dag][piper][bad-input]") {
  check_message(run_dag({"convert", "-", "--to", "piper"},
                        "place {PP:0} on [0]\nreplicate {PP:0} on [0] shard_optimizer\n"),
                2,
                {"directive 2 (line 2), replicate: ", "shard_optimizer"});
  check_message(run_dag({"convert", "-"}, kTwoPipelines), 2, {"--to"});
  check_message(run_dag({"convert", "-", "--to", "yaml"}, kTwoPipelines), 2, {"--to", "yaml"});
  check_message(run_dag({"convert", "-", "--to", "text"}, "0B0 0F0\n"), 1, {"breaks V"});
  check_message(run_dag({"convert", "-", "--to", "text"},
                        run_schedule_line("make chimera --devices 2 --microbatches 4").out),
                2,
                {"@replicas"});
  check_message(run_dag({"show", "-"}, R"([{"op": "plce"}])"), 2, {"did you mean place"});
}

}  // namespace stagecraft::tests
