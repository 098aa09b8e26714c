/// Tests the differences of two schedules: the place where their rows part, and schedules that cut
/// the model into different numbers of stages. The whole model is then the same work on both sides.

#include "stagecraft/tools/schedule/report/difference.h"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

std::string made_file(const TemporaryFolder& folder,
                      const std::string& name,
                      const std::string& words) {
  const CommandResult result = run_schedule_line("make " + words);
  CAPTURE(words, result.err);
  REQUIRE(result.exit_code == 0);
  return folder.write(name, result.out);
}

/// Returns the differences of two texts that differ.
std::string difference_of(const std::string& a, const std::string& b) {
  const TemporaryFolder folder;
  const CommandResult result = run_schedule({"diff", folder.write("a", a), folder.write("b", b)});
  CAPTURE(a, b, result.err);
  CHECK(result.exit_code == 1);
  return result.out;
}

TEST_CASE("diff weighs stages where there are more of them", "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string one = made_file(folder, "a", "1f1b --devices 4 --microbatches 8");
  const std::string two = made_file(folder, "b", "interleaved --devices 4 --microbatches 8");
  const CommandResult result = run_schedule({"diff", one, two});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out,
             ContainsSubstring("normalized to one model of 4 stages in A and 8 in B:\na stage of B "
                               "takes 4/8 of the time"));
  // Work is 24 on each device; the ramp is 9, and two stages per device halve it.
  CHECK_THAT(result.out, ContainsSubstring("makespan            33 -> 28.5 (-4.5)\n"));
  CHECK_THAT(result.out, ContainsSubstring("bubble              27.3% -> 15.8%\n"));
  // It holds 11 halves of what a device of 1F1B holds of one microbatch.
  CHECK_THAT(result.out, ContainsSubstring("largest in flight   4 -> 5.5 (+1.5)\n"));
  const CommandResult turned = run_schedule({"diff", two, one, "--f", "2", "--b", "4"});
  CHECK_THAT(turned.out, ContainsSubstring("a stage of A takes 4/8"));
  CHECK_THAT(turned.out, ContainsSubstring("makespan            57 -> 66 (+9)\n"));
}

TEST_CASE("replicas are copies of one model, not more stages of it", "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string one = made_file(folder, "a", "1f1b --devices 4 --microbatches 8");
  const std::string twice = made_file(folder, "b", "chimera --devices 4 --microbatches 8");
  const CommandResult result = run_schedule({"diff", one, twice});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, !ContainsSubstring("normalized") && ContainsSubstring("makespan  "));
}

TEST_CASE("with costs diff takes the file's word for what stages take",
          "[tools][schedule][diff][costs]") {
  const TemporaryFolder folder;
  const std::string costs =
      folder.write("c.json", R"({"version": 1, "stages": {"usual": {"F": 1, "B": 2}}})");
  const CommandResult result =
      run_schedule({"diff",
                    made_file(folder, "a", "1f1b --devices 4 --microbatches 8"),
                    made_file(folder, "b", "interleaved --devices 4 --microbatches 8"),
                    "--costs",
                    costs});
  CHECK_THAT(result.out, ContainsSubstring("not normalized: --costs gives"));
  CHECK_THAT(result.out, ContainsSubstring("makespan            33 -> 57 (+24)\n"));
}

TEST_CASE("diff for programs has both sides' figures and the rows that differ",
          "[tools][schedule][diff][json]") {
  const TemporaryFolder folder;
  const std::string one = made_file(folder, "a", "1f1b --devices 4 --microbatches 8");
  const std::string two = made_file(folder, "b", "interleaved --devices 4 --microbatches 8");
  const CommandResult result = run_schedule({"diff", one, two, "--json"});
  CHECK(result.exit_code == 1);
  const Json answer = Json::parse(result.out);
  CHECK_FALSE(answer["equal"].get<bool>());
  CHECK(answer["normalized"] == true);
  CHECK(answer["differs"] == "their stage graphs differ");
  REQUIRE(answer["rows"].size() == 4);
  CHECK(answer["rows"][3]["row"] == 3);
  CHECK(answer["rows"][3]["a"] == "3B0");
  CHECK(answer["rows"][3]["b"] == "3F1");
  CHECK(answer["a"]["stage_weight"] == 1);
  CHECK(answer["b"]["stage_weight"] == 0.5);
  CHECK(answer["b"]["makespan"] == 28.5);
  CHECK(answer["b"]["idle"] == Json({4.5, 4.5, 4.5, 4.5}));

  const Json equal = Json::parse(run_schedule({"diff", one, one, "--json"}).out);
  CHECK(equal["equal"] == true);
  CHECK(equal["rows"].empty());

  const std::string broken = folder.write("c", "0F0 . .\n. 1F0 1B0\n");
  const Json half = Json::parse(run_schedule({"diff", one, broken, "--json"}).out);
  CHECK(half["b"]["violations"] == 1);
  CHECK(half["b"]["makespan"].is_null());
  CHECK(half["a"]["makespan"] == 16.5);  // in units of B's stages, which are twice as large
}

TEST_CASE("diff names the first task per row that differs, and what it does",
          "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string a = made_file(folder, "a", "gpipe --devices 4 --microbatches 8");
  const std::string b = made_file(folder, "b", "1f1b --devices 4 --microbatches 8");
  const CommandResult result = run_schedule({"diff", a, b});
  CHECK(result.exit_code == 1);
  for (const char* part : {"4 of 4 rows differ\n",
                           "d0          4  0F4  0B0     9  8 -> 4 (-4)\n",
                           "d3          1  3F1  3B0     9  8 -> 1 (-7)\n",
                           "makespan            33\n",
                           "largest in flight   8 -> 4 (-4)\n"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
  // With a split backward, the same rows take less time.
  const std::string c = made_file(folder, "c", "zb-h1 --devices 4 --microbatches 8");
  CHECK_THAT(run_schedule({"diff", b, c}).out,
             ContainsSubstring("makespan            33 -> 27 (-6)"));
}

TEST_CASE("only rows that differ are listed, and a shorter one has ended",
          "[tools][schedule][diff]") {
  const std::string whole = "0F0 . . 0B0\n. 1F0 1B0 .\n";
  const std::string split = difference_of(whole, "0F0 . . 0I0 0W0\n. 1F0 1B0 . .\n");
  CHECK_THAT(split, ContainsSubstring("1 of 2 rows differ"));
  CHECK_THAT(split, ContainsSubstring("0B0  0I0") && !ContainsSubstring("\nd1"));
  const std::string broken = difference_of(whole, "0F0 . .\n. 1F0 1B0\n");
  CHECK_THAT(broken, ContainsSubstring("0B0  (end)"));
  CHECK_THAT(broken, ContainsSubstring("has 1 violation and cannot be simulated"));
  // A row that only one side has differs from its first task on.
  CHECK_THAT(difference_of("0F0 0B0\n", whole), ContainsSubstring("\nd1          0  (end)  1F0"));
}

TEST_CASE("the first 32 rows that differ are listed, and the others are counted",
          "[tools][schedule][diff]") {
  std::string all_forwards, interleaved;
  for (int row = 0; row < 34; ++row) {
    const std::string stage = std::to_string(row);
    all_forwards += stage + "F0 " + stage + "F1 " + stage + "B0 " + stage + "B1\n";
    interleaved += stage + "F0 " + stage + "B0 " + stage + "F1 " + stage + "B1\n";
  }
  const std::string text =
      difference_of("@form list\n" + all_forwards, "@form list\n" + interleaved);
  CHECK_THAT(text,
             ContainsSubstring("34 of 34 rows differ\n") && ContainsSubstring("\nd31 ") &&
                 !ContainsSubstring("\nd32 ") &&
                 ContainsSubstring("(2 more rows differ; --json has them)\n"));
}

TEST_CASE("with costs, diff compares bytes too", "[tools][schedule][diff][costs]") {
  const TemporaryFolder folder;
  const std::string costs = folder.write(
      "c.json", R"({"version": 1, "stages": {"each": [{"stage": 0, "activations": 512}]}})");
  const CommandResult result =
      run_schedule({"diff",
                    made_file(folder, "a", "gpipe --devices 2 --microbatches 4"),
                    made_file(folder, "b", "1f1b --devices 2 --microbatches 4"),
                    "--costs",
                    costs});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, ContainsSubstring("largest peak bytes  2.0 KiB -> 1.0 KiB (-1.0 KiB)\n"));
}

TEST_CASE("the same lists differ if the files differ outside the cells",
          "[tools][schedule][diff]") {
  const std::string rows = "0F0 . . . . 0B0\n. 1F0 . . 1B0 .\n. . 2F0 2B0 . .\n";
  CHECK_THAT(difference_of(rows, "@edges 0-2,1-2\n" + rows),
             ContainsSubstring("\ntheir stage graphs differ\n"));
  CHECK_THAT(difference_of(rows, "@frozen 0\n" + rows),
             ContainsSubstring("\ntheir frozen stages differ\n"));
  CHECK_THAT(difference_of(rows, "@sizes 1,1,2\n" + rows),
             ContainsSubstring("\ntheir sizes of microbatches differ\n"));
  CHECK_THAT(difference_of(rows, "@microbatches 2\n" + rows),
             ContainsSubstring("\ntheir numbers of microbatches differ\n"));
}

}  // namespace
}  // namespace stagecraft::tests
