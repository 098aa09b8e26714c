/// Checks the common shape of the objects of all commands that need no LibTorch (JO-1), and that
/// they leave a terminal as it is (JO-2).
#include "stagecraft/tools/common/command_json.h"

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/common/json_shape.h"
#include "stagecraft/tools/credentials/credentials.h"
#include "stagecraft/tools/dag/dag.h"
#include "stagecraft/tools/plan/plan.h"
#include "stagecraft/tools/schedule/schedule.h"

namespace stagecraft::tests {
namespace {

using ShapeWords = std::vector<std::string>;

constexpr const char* kTwoRows = "0F0 0F1 .   0B0 .   0B1\n.   1F0 1B0 1F1 1B1 .\n";

constexpr const char* kTwoOperators = R"({"version": 1, "samples": 1,
  "operators": [{"id": 0, "forward": 0.001, "backward_input": 0.001, "backward_weight": 0.001},
                {"id": 1, "forward": 0.002, "backward_input": 0.001, "backward_weight": 0.001,
                 "reads": [{"from": 0, "bytes": 1000}]}]})";

CommandResult run_dag_json(const ShapeWords& words, const std::string& input) {
  return run_in_test(&tools::dag, words, input);
}

}  // namespace

TEST_CASE("an object is one line that begins with its command and the version (JO-1)",
          "[tools][json]") {
  CHECK(tools::command_json("plan", {{"file", "caf\xE9"}, {"a", 1}}) ==
        "{\"stagecraft\":\"plan\",\"version\":1,\"file\":\"caf\xEF\xBF\xBD\",\"a\":1}\n");
}

TEST_CASE("control characters are escaped, and other text stays (JO-2)", "[tools][json]") {
  CHECK(tools::command_json("plan",
                            {{"a", "\x1B[2J\x7F\xC2\x9B]1m\xC2\x80\xC2\xA0\xC3\x9F"}, {"b", 1}}) ==
        R"({"stagecraft":"plan","version":1,"a":"\u001b[2J\u007f\u009b]1m\u0080)"
        "\xC2\xA0\xC3\x9F\",\"b\":1}\n");
}

TEST_CASE("every object of stagecraft schedule has the common shape (JO-1)", "[tools][json]") {
  const auto [name, more] = GENERATE(table<std::string, ShapeWords>(
      {{"list", {}},
       {"check", {"-"}},
       {"simulate", {"-"}},
       {"lint", {"-"}},
       {"diff", {"-", STAGECRAFT_SOURCE_DIR "/examples/schedules/two_rows.txt"}},
       {"compare", {"1f1b", "chimera", "--devices", "3", "--microbatches", "4"}},
       {"sweep", {"1f1b", "interleaved", "--devices", "2,3", "--microbatches", "4"}},
       {"search", {"--devices", "2", "--microbatches", "2", "--cap", "2"}}}));
  ShapeWords words{name};
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--json");
  const CommandResult result = run_in_test(&tools::schedule, words, kTwoRows);
  CAPTURE(result.err);
  CHECK(result.exit_code < 2);
  CHECK(check_json_shape("schedule " + name, result.out).size() == 1);
}

TEST_CASE("faults have the shape of everything else (JO-1)", "[tools][json]") {
  const CommandResult result =
      run_in_test(&tools::schedule, {"check", "-", "--json"}, "0F0 0F0 0B0\n1F0 . 1B0\n");
  CHECK(result.exit_code == 1);
  CHECK(check_json_shape("schedule check", result.out).at(0).at("violations").size() > 1);
}

TEST_CASE("the objects of dag show, plan and credentials have the common shape (JO-1)",
          "[tools][json]") {
  const CommandResult dag = run_dag_json({"show", "-", "--f", "1", "--json"}, kTwoRows);
  CAPTURE(dag.err);
  CHECK(check_json_shape("dag show", dag.out).size() == 1);

  const CommandResult plan = run_in_test(
      &tools::plan,
      {"-", "--devices", "2", "--batch", "4", "--why", "--what-if", "memory=4G", "--json"},
      kTwoOperators);
  CAPTURE(plan.err);
  CHECK(check_json_shape("plan", plan.out).at(0).contains("before"));

  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir, {.members = 1, .durable = false});
  const CommandResult credentials = run_in_test(&tools::credentials, {"show", dir, "--json"});
  CHECK(check_json_shape("credentials show", credentials.out).at(0).at("processes").size() == 2);
}

TEST_CASE("an error is text, also with --json", "[tools][json][bad-input]") {
  check_message(run_in_test(&tools::schedule, {"simulate", "-", "--json"}, "0F0 0B0\n1F0 1B0\n"),
                1,
                {"stagecraft: "});
}

}  // namespace stagecraft::tests
