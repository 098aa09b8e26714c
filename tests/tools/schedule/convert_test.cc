/// Tests `stagecraft schedule convert`: formats both ways, and what a format cannot express.

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

constexpr const char* kConvertible =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";

Json figures_of(const std::string& text, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"simulate", "-", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const CommandResult result = run_schedule(words, text);
  CAPTURE(text, result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

std::string converted(const std::string& text, const std::string& format) {
  const CommandResult result = run_schedule({"convert", "-", "--to", format}, text);
  CAPTURE(format, result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

}  // namespace

TEST_CASE("frozen stages go through the formats that can say so", "[tools][schedule][surplus]") {
  const std::string text = std::string("@frozen 0\n") + kConvertible;
  for (const char* format : {"text", "list", "json"}) {
    CAPTURE(format);
    CHECK_THAT(converted(converted(text, format), "text"), ContainsSubstring("@frozen 0\n"));
  }
  for (const char* format : {"pytorch", "pytorch-comms"}) {
    CAPTURE(format);
    const CommandResult refused = run_schedule({"convert", "-", "--to", format}, text);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring("0F0 (row 0, column 0): its stage 0 is frozen"));
  }
  // Edges from the command line keep the stages that the file declares.
  CHECK_THAT(run_schedule({"convert", "-", "--to", "text", "--graph", "0-1"}, text).out,
             ContainsSubstring("@frozen 0\n"));
  const TemporaryFolder folder;
  const CommandResult diff =
      run_schedule({"diff", folder.write("a", text), folder.write("b", kConvertible)});
  CHECK(diff.exit_code == 1);
  CHECK_THAT(diff.out, ContainsSubstring("their frozen stages differ"));
}

TEST_CASE("every builder's schedule goes through every format that can express it",
          "[tools][schedule][convert]") {
  for (const BuilderInfo& builder : builders()) {
    const std::string words =
        std::string(builder.name) + (builder.takes_graph ? " --graph 0-2,1-2 --microbatches 4"
                                                         : " --devices 4 --microbatches 8");
    CAPTURE(words);
    const std::string text = run_schedule_line("make " + words).out;
    const Json expected = figures_of(text);
    for (const ScheduleFormat& to : schedule_formats()) {
      const std::string format(to.name);
      const std::string name(to.words.name);
      CAPTURE(format);
      const CommandResult there = run_schedule({"convert", "-", "--to", format}, text);
      const bool has_edges = to.words.graph == formats::GraphWords::Any;
      const bool replicas = expected.at("replicas") == 2;
      if (!has_edges && (replicas || (builder.takes_graph && format != "piper"))) {
        check_message(there, 2, {name + " cannot express", "0F0 (row 0, column 0)"});
        continue;
      }
      if (there.exit_code != 0) {
        // The format cannot express overlap groups.
        check_message(there, 2, {name + " cannot express", "|", "row", "column"});
        continue;
      }
      if (builder.takes_graph && format == "piper") {
        // The edges come from the model.
        CHECK(figures_of(there.out, {"--graph", "0-2,1-2"}) == expected);
        continue;
      }
      CHECK(figures_of(there.out) == expected);
      CHECK(converted(there.out, "text") == text);
      const std::string made = "make " + words + " --format " + format;
      CHECK(run_schedule_line(made).out == there.out);
    }
  }
}

TEST_CASE("what a format cannot express names the first such cell", "[tools][schedule][convert]") {
  const auto refused = [](const std::string& text,
                          const std::string& format,
                          const std::vector<std::string>& parts) {
    CAPTURE(text, format);
    check_message(run_schedule({"convert", "-", "--to", format}, text), 2, parts);
  };
  refused("0F0 0B0 0U\n", "pytorch", {"0U (row 0, column 2)", "update"});
  refused("0F0 0F1 0B0|0F2 0B1 0B2\n", "pytorch", {"0B0|0F2 (row 0, column 2)"});
  refused("@edges 0-2,1-2\n0F0\n1F0\n2F0\n", "pytorch-comms", {"0F0 (row 0, column 0)"});
  refused("0F0 0U\n0B0 .\n", "jaxpp", {"0U (row 0, column 1)"});
  refused("0F0|1F0 0B0 1B0\n", "zero-bubble", {"0F0|1F0 (row 0, column 0)"});
  refused("0F0 .\n. 0B0\n", "piper", {"two cells or more, but row 0 has 1"});
  refused("@edges 0-1\n0F0 .\n1F0 .\n2F0 .\n", "pytorch", {"1F0 (row 1, column 0)"});
  refused(R"({"rows": [[[0,0,"F"],[0,0,"X"]]]})", "text", {"row 0, column 1"});
  refused(R"({"rows": [[[0,-1,"F"]]]})", "json", {"row 0, column 0"});
  refused(R"({"rows": [[[0,0,"F"], "x"]]})", "list", {"row 0, column 1"});
}

TEST_CASE("a list that deadlocks has no array, but stays a list", "[tools][schedule][convert]") {
  const std::string text = "@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n";
  check_message(run_schedule({"convert", "-", "--to", "text"}, text), 1, {"no columns", "list"});
  CHECK(converted(converted(text, "json"), "list") == text);
  CHECK(converted(converted(text, "pytorch"), "list") == text);
}

TEST_CASE("an array that would be the square of its list is refused",
          "[tools][schedule][convert]") {
  std::string text = "@form list\n";
  for (int row = 0; row < 6000; ++row) {
    text += std::to_string(row) + "F0 " + std::to_string(row) + "B0\n";
  }
  check_message(run_schedule({"convert", "-", "--to", "text"}, text), 2, {"cells", "list"});
  CHECK(run_schedule({"show", "-"}, text).exit_code == 0);
}

TEST_CASE("converting with edges writes them down", "[tools][schedule][convert]") {
  const CommandResult result = run_schedule({"convert", "-", "--to", "text", "--graph", "0-2,1-2"},
                                            "0F0,,,0B0\n1F0,,,1B0\n,2F0,2B0,\n");
  CHECK(result.out ==
        "@edges 0-2,1-2\n"
        "0F0 .   .   0B0\n"
        "1F0 .   .   1B0\n"
        ".   2F0 2B0 .\n");
}

TEST_CASE("convert needs a format that it knows", "[tools][schedule][convert][bad-input]") {
  check_message(run_schedule({"convert", "-"}, kConvertible), 2, {"--to"});
  check_message(
      run_schedule({"convert", "-", "--to", "csv"}, kConvertible), 2, {"'csv'", "pytorch"});
}

}  // namespace stagecraft::tests
