/// Tests `stagecraft schedule sweep`: builders over devices, microbatches and chunks.

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("sweep has a line for every job", "[tools][schedule]") {
  const CommandResult result = run_schedule_line(
      "sweep 1f1b interleaved --devices 4,2 --microbatches 8,16 --chunks 2,4 --csv");
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(count(result.out, "\n") == 1 + 4 + 8);
  CHECK_THAT(result.out, ContainsSubstring("1f1b,4,4,8,33,0.2727"));
  CHECK_THAT(result.out, ContainsSubstring("interleaved,4,16,8,26.25,"));
  // The order is ascending for any order of the arguments.
  CHECK(result.out.find("1f1b,2,2,8,") < result.out.find("1f1b,4,4,8,"));
  const CommandResult text =
      run_schedule_line("sweep 1f1b interleaved --devices 4,2 --microbatches 8,16 --chunks 2,4");
  CHECK(count(text.out, "\n") == 1 + 4 + 8);
  CHECK_THAT(text.out, ContainsSubstring("27.3%"));
}

TEST_CASE("sweep prints for programs what compare prints, with the job of each line",
          "[tools][schedule][json]") {
  using Json = nlohmann::json;
  const std::string costs = " --f 3 --b 5 --latency 0.5 --json";
  const CommandResult result = run_schedule_line(
      "sweep 1f1b interleaved chimera --devices 4,3 --microbatches 8 --chunks 3" + costs);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, !ContainsSubstring("chimera"));  // its line has the reason
  const Json answer = Json::parse(result.out);
  CHECK(answer.at("version") == 1);
  const Json& lines = answer.at("schedules");
  REQUIRE(lines.size() == 6);
  for (Json line : lines) {
    const int devices = line.at("devices");
    const Json compared =
        Json::parse(run_schedule_line("compare " + line.at("schedule").get<std::string>() +
                                      " --microbatches 8 --chunks 3 --devices " +
                                      std::to_string(devices) + costs)
                        .out)
            .at("schedules")
            .at(0);
    CHECK(line.at("microbatches") == 8);
    CHECK(line.contains("chunks") == (line.at("schedule") == "interleaved"));
    CHECK(line.contains("reason") == (line.at("schedule") == "chimera" && devices == 3));
    for (const char* key : {"devices", "microbatches", "chunks"}) {
      line.erase(key);
    }
    CHECK(line == compared);
  }
}

TEST_CASE("sweep says how many jobs a builder does not take", "[tools][schedule]") {
  const CommandResult result =
      run_schedule_line("sweep chimera gpipe --devices 3,4 --microbatches 8,10");
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err,
             ContainsSubstring("chimera, 3 times, the first") && ContainsSubstring("even"));
  CHECK(count(result.out, "\n") == 1 + 1 + 4);
  const CommandResult none = run_schedule_line("sweep chimera --devices 3 --microbatches 8");
  CHECK(none.exit_code == 1);
  CHECK(none.out.empty());
  CHECK_THAT(none.err, ContainsSubstring("chimera, once"));
}

TEST_CASE("sweep draws a line for every schedule, devices and chunks", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/plot.svg";
  CHECK(run_schedule({"sweep",
                      "1f1b",
                      "interleaved",
                      "--devices",
                      "4",
                      "--microbatches",
                      "8,16,32",
                      "--chunks",
                      "2,4",
                      "--svg",
                      file})
            .exit_code == 0);
  const std::string svg = read_text_file(file);
  CHECK(count(svg, "<polyline") == 3);
  CHECK(count(svg, "class='mark'") == 9 + 3);  // and in the legend
  CHECK_THAT(svg,
             ContainsSubstring(">interleaved, P = 4, V = 2<") &&
                 ContainsSubstring("1f1b, P = 4: 8 microbatches, 27.3%") &&
                 ContainsSubstring("</svg>"));
}

TEST_CASE("sweep says what is wrong with its words", "[tools][schedule][bad-input]") {
  const auto refused = [](const std::string& words, const std::vector<std::string>& parts) {
    CAPTURE(words);
    check_message(run_schedule_line("sweep " + words), 2, parts);
  };
  refused("--devices 4 --microbatches 8", {"NAMES"});
  refused("1f1b --microbatches 8", {"--devices"});
  refused("1f1b --devices 4", {"--microbatches"});
  refused("1f1 --devices 4 --microbatches 8", {"'1f1'", "did you mean 1f1b?"});
  for (const char* wrong : {"0", "4,", ",4", "4;8", "x", "-1", "4,,8", "99999999999"}) {
    refused("1f1b --microbatches 8 --devices=" + std::string(wrong),
            {"--devices expects", "'" + std::string(wrong) + "'"});
  }
  refused("1f1b --devices 4 --microbatches 8 --svg /none/x.svg", {"/none/x.svg"});
  refused("1f1b --devices 4 --microbatches 8 --csv --json", {"one of --json and --csv"});
  for (const std::string other : {"--json", "--csv"}) {
    refused("1f1b --devices 4 --microbatches 8 --svg - " + other,
            {"--svg - and " + other + " both print to standard output"});
  }
  refused("1f1b --devices 4 --microbatches 8 --w 1 --costs c.json", {"--costs or --w", "both"});
}

}  // namespace stagecraft::tests
