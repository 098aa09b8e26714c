/// Tests `stagecraft schedule diff`: the place where two schedules part, and schedules that cut the
/// model into different numbers of stages, where the whole model is the same work on both sides.

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

constexpr const char* kDiffed =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";

std::string made(const TemporaryFolder& folder, const std::string& name, const std::string& words) {
  const CommandResult result = run_schedule_line("make " + words);
  CAPTURE(words, result.err);
  REQUIRE(result.exit_code == 0);
  return folder.write(name, result.out);
}

}  // namespace

TEST_CASE("diff weighs stages where there are more of them", "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string one = made(folder, "a", "1f1b --devices 4 --microbatches 8");
  const std::string two = made(folder, "b", "interleaved --devices 4 --microbatches 8");
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
  const std::string one = made(folder, "a", "1f1b --devices 4 --microbatches 8");
  const std::string twice = made(folder, "b", "chimera --devices 4 --microbatches 8");
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
                    made(folder, "a", "1f1b --devices 4 --microbatches 8"),
                    made(folder, "b", "interleaved --devices 4 --microbatches 8"),
                    "--costs",
                    costs});
  CHECK_THAT(result.out, ContainsSubstring("not normalized: --costs gives"));
  CHECK_THAT(result.out, ContainsSubstring("makespan            33 -> 57 (+24)\n"));
}

TEST_CASE("diff for programs has both sides' figures and the rows that differ",
          "[tools][schedule][diff][json]") {
  const TemporaryFolder folder;
  const std::string one = made(folder, "a", "1f1b --devices 4 --microbatches 8");
  const std::string two = made(folder, "b", "interleaved --devices 4 --microbatches 8");
  const CommandResult result = run_schedule({"diff", one, two, "--json"});
  CHECK(result.exit_code == 1);
  const Json json = Json::parse(result.out);
  CHECK_FALSE(json["equal"].get<bool>());
  CHECK(json["normalized"] == true);
  CHECK(json["differs"] == "their stage graphs differ");
  REQUIRE(json["rows"].size() == 4);
  CHECK(json["rows"][3]["row"] == 3);
  CHECK(json["rows"][3]["a"] == "3B0");
  CHECK(json["rows"][3]["b"] == "3F1");
  CHECK(json["a"]["stage_weight"] == 1);
  CHECK(json["b"]["stage_weight"] == 0.5);
  CHECK(json["b"]["makespan"] == 28.5);
  CHECK(json["b"]["idle"] == Json({4.5, 4.5, 4.5, 4.5}));

  const Json equal = Json::parse(run_schedule({"diff", one, one, "--json"}).out);
  CHECK(equal["equal"] == true);
  CHECK(equal["rows"].empty());

  const std::string broken = folder.write("c", "0F0 . .\n. 1F0 1B0\n");
  const Json half = Json::parse(run_schedule({"diff", one, broken, "--json"}).out);
  CHECK(half["b"]["violations"] == 1);
  CHECK(half["b"]["makespan"].is_null());
  CHECK(half["a"]["makespan"] == 16.5);  // in units of B's stages, which are twice as large
}

TEST_CASE("equal schedules are equal, whatever their form and columns", "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a", kDiffed);
  const std::string list =
      folder.write("b", run_schedule({"convert", "-", "--to", "list"}, kDiffed).out);
  const std::string wide = folder.write("c", "0F0 0F1 . . 0B0 . 0B1\n. 1F0 . 1B0 1F1 1B1 .\n");
  const CommandResult same = run_schedule({"diff", a, "-"}, kDiffed);
  CHECK(same.exit_code == 0);
  CHECK(same.out == "equal: 2 devices, 2 stages, 2 microbatches\n");
  for (const std::string& b : {list, wide}) {
    const CommandResult result = run_schedule({"diff", a, b});
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.out, ContainsSubstring("only columns differ"));
  }
}

TEST_CASE("diff names the first task per row that differs, and what it does",
          "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string a = made(folder, "a", "gpipe --devices 4 --microbatches 8");
  const std::string b = made(folder, "b", "1f1b --devices 4 --microbatches 8");
  const CommandResult result = run_schedule({"diff", a, b});
  CHECK(result.exit_code == 1);
  for (const char* part : {"4 of 4 rows differ\n",
                           "d0          4  0F4  0B0     9  8 -> 4 (-4)\n",
                           "d3          1  3F1  3B1     9  8 -> 1 (-7)\n",
                           "makespan            33\n",
                           "largest in flight   8 -> 4 (-4)\n"}) {
    CHECK_THAT(result.out, ContainsSubstring(part) || ContainsSubstring("3F1  3B0"));
  }
  // With a split backward, the same rows take less time.
  const std::string c = made(folder, "c", "zb-h1 --devices 4 --microbatches 8");
  CHECK_THAT(run_schedule({"diff", b, c}).out,
             ContainsSubstring("makespan            33 -> 27 (-6)"));
}

TEST_CASE("only rows that differ are listed, and a shorter one has ended",
          "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a", "0F0 . . 0B0\n. 1F0 1B0 .\n");
  const std::string b = folder.write("b", "0F0 . . 0I0 0W0\n. 1F0 1B0 . .\n");
  const CommandResult result = run_schedule({"diff", a, b});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, ContainsSubstring("1 of 2 rows differ"));
  CHECK_THAT(result.out, ContainsSubstring("0B0  0I0") && !ContainsSubstring("\nd1"));
  const std::string c = folder.write("c", "0F0 . .\n. 1F0 1B0\n");
  const CommandResult broken = run_schedule({"diff", a, c});
  CHECK(broken.exit_code == 1);
  CHECK_THAT(broken.out, ContainsSubstring("0B0  (end)"));
  CHECK_THAT(broken.out, ContainsSubstring("has 1 violation and cannot be simulated"));
}

TEST_CASE("with costs, diff compares bytes too", "[tools][schedule][diff][costs]") {
  const TemporaryFolder folder;
  const std::string costs = folder.write(
      "c.json", R"({"version": 1, "stages": {"each": [{"stage": 0, "activations": 512}]}})");
  const CommandResult result =
      run_schedule({"diff",
                    made(folder, "a", "gpipe --devices 2 --microbatches 4"),
                    made(folder, "b", "1f1b --devices 2 --microbatches 4"),
                    "--costs",
                    costs});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, ContainsSubstring("largest peak bytes  2.0 KiB -> 1.0 KiB (-1.0 KiB)\n"));
}

TEST_CASE("the same lists under another graph differ", "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string rows = "0F0 . . . . 0B0\n. 1F0 . . 1B0 .\n. . 2F0 2B0 . .\n";
  const CommandResult result =
      run_schedule({"diff", folder.write("a", rows), folder.write("b", "@edges 0-2,1-2\n" + rows)});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, ContainsSubstring("stage graphs differ"));
}

TEST_CASE("diff needs two readable files", "[tools][schedule][diff][bad-input]") {
  check_message(run_schedule({"diff", "-"}, kDiffed), 2, {"expected B"});
  check_message(run_schedule({"diff", "-", "-"}, kDiffed), 2, {"standard input", "once"});
  check_message(run_schedule({"diff", "-", "/none"}, kDiffed), 2, {"'/none'"});
}

}  // namespace stagecraft::tests
