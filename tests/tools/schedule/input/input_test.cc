/// Tests the reading of schedules: formats, stage graphs, columns that are not times, and input
/// that is no schedule.

#include "stagecraft/tools/schedule/input/input.h"

#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Edges = std::vector<StageGraph::Edge>;
using tools::ReadOptions;
using tools::ScheduleFile;

/// ReadFile is a file as a command reads it, and the notes on standard error.
struct ReadFile {
  ScheduleFile file;
  std::string notes;

  [[nodiscard]] std::vector<Violation> violations() const {
    return validate(file.schedule, file.graph);
  }
};

ReadFile file_of(const std::string& text, ReadOptions options = {}, const std::string& path = "-") {
  std::istringstream in;
  std::ostringstream out, err;
  tools::Console console{in, out, err};
  options.command = "stagecraft schedule check";
  ScheduleFile file = tools::schedule_in(text, path, options, console);
  return {std::move(file), err.str()};
}

TEST_CASE("the reader finds the format, or is told", "[tools][schedule]") {
  const auto format_of = [](const std::string& text, const std::string& path = "-") {
    return file_of(text, {}, path).file.format->name;
  };
  CHECK(format_of(R"({"rows": [[[0,0,"F"],[0,0,"B"]]]})") == "json");
  CHECK(format_of("0F0,0B0\n") == "pytorch");
  CHECK(format_of("0F0 0B0\n") == "text");
  CHECK(format_of("# a, b\n@edges 0-1\n0F0 . . 0B0\n. 1F0 1B0 .\n") == "text");
  // With one cell a row and no comma, only the name of the file shows that it is CSV.
  CHECK(format_of("0F0\n") == "text");
  CHECK(format_of("0F0\n", "x.csv") == "pytorch");
  CHECK(file_of("0F0\n", {.from = "pytorch"}).file.format->name == "pytorch");
  CHECK_THAT(refusal([] { (void)file_of("0F0 0B0\n", {.from = "json"}); }, Errc::ScheduleParse),
             ContainsSubstring("standard input: ") && ContainsSubstring("JSON"));
}

TEST_CASE("a byte order mark is no part of the first cell", "[tools][schedule]") {
  const ReadFile marked = file_of(
      "\xEF\xBB\xBF"
      "0F0 0B0\n");
  CHECK(marked.file.schedule == Schedule::parse("0F0 0B0\n"));
  CHECK(marked.file.text == "0F0 0B0\n");
}

TEST_CASE("a CSV whose columns are not times is read as an order, which is noted",
          "[tools][schedule]") {
  // Stage 1 runs beside stage 0, and rows have different lengths.
  const std::string beside = "0F0,0F1,,0B0,0B1\n1F0,1F1,1B0,1B1\n";
  const ReadFile lax = file_of(beside);
  CHECK(lax.file.schedule == Schedule::parse("@form list\n0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n"));
  CHECK(lax.violations().empty());
  CHECK_THAT(
      lax.notes,
      ContainsSubstring("note: standard input: the columns are not times, because 2 cells "
                        "stand before cells that they need; each row is read as an order ("));
  const ReadFile strict = file_of(beside, {.strict = true});
  CHECK(strict.file.schedule.form() == Schedule::Form::Array);
  CHECK(strict.violations().front().rule == "V20");
  CHECK(strict.notes.empty());
  // JaxPP's schedules wait for data too.
  CHECK_THAT(file_of("[[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD), None],\n"
                     " [Task(stage_id=1, mubatch_idx=0, fwd_or_bwd=TaskType.FWD), None]]\n")
                 .notes,
             ContainsSubstring("the columns are not times, because a cell stands before one"));
  // An order that cannot run has one violation with its cycle, not one per column.
  const auto stuck = file_of("0F0,0B0,,0F1,0B1\n1F0,1F1,1B0,1B1\n").violations();
  REQUIRE(stuck.size() == 1);
  CHECK(stuck[0].rule == "V29");
  CHECK(stuck[0].cycle.size() == 4);
  CHECK(stuck[0].repair.has_value());
}

TEST_CASE("columns that are times stay an array, and those of text always are",
          "[tools][schedule]") {
  const ReadFile timed = file_of("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n");
  CHECK(timed.file.schedule == Schedule::parse("0F0 0F1 . 0B0 . 0B1\n. 1F0 1B0 1F1 1B1 .\n"));
  CHECK(timed.notes.empty());
  const ReadFile text = file_of("0F0 0F1 . 0B0 0B1\n1F0 1F1 1B0 1B1 .\n");
  CHECK(text.file.schedule.form() == Schedule::Form::Array);
  CHECK(text.notes.empty());
  CHECK_FALSE(text.violations().empty());
}

TEST_CASE("edges of an option replace the chain", "[tools][schedule]") {
  // Two encoders do not wait for each other: in a chain, 1F0 would be too early.
  const std::string text =
      "0F0 .   .   0B0\n"
      "1F0 .   .   1B0\n"
      ".   2F0 2B0 .\n";
  CHECK(file_of(text).violations().front().rule == "V20");
  const ReadFile joined = file_of(text, {.graph = "0-2,1-2"});
  CHECK(joined.file.graph.edges() == Edges{{0, 2}, {1, 2}});
  CHECK(joined.violations().empty());
  const TemporaryFolder folder;
  const std::string edges = folder.write("e", "# two encoders\n0-2,\n\n1-2  # a head\n");
  CHECK(file_of(text, {.graph = "@" + edges}).file.graph.edges() == joined.file.graph.edges());
  // Edges of another model add stages that the schedule lacks.
  CHECK(file_of(text, {.graph = "0-3"}).file.graph.size() == 4);
}

TEST_CASE("edges of an option keep the file's replicas, frozen stages and sizes",
          "[tools][schedule]") {
  const auto graph_of = [](const std::string& text, const char* edges) {
    return file_of(text, {.graph = edges}).file.graph;
  };
  const std::string both_ways = "@edges 0-1,2-3\n@replicas 0=2,1=3\n0F0 3F0\n2F0 1F0\n";
  CHECK(graph_of(both_ways, "0-1,2-3").replica_pairs() == Edges{{0, 2}, {1, 3}});
  CHECK(graph_of("@frozen 0\n0F0 .\n. 1F0\n", "0-1").frozen() == std::vector{0});
  const std::string sizes = "@sizes 1,2\n0F0 0F1 .\n. . 1F0\n";
  CHECK(graph_of(sizes, "0-1").microbatch_sizes() == std::vector{1, 2});
  // A stage that the file does not know takes each microbatch by itself.
  CHECK(graph_of(sizes, "0-1,1-2").microbatch_sizes() == std::vector{1, 2, 1});
}

TEST_CASE("a chain is assumed if neither the format nor an option gives a graph",
          "[tools][schedule]") {
  CHECK(file_of("0F0,,0B0\n").file.chain_assumed);
  CHECK_FALSE(file_of("0F0,,\n,1F0,\n", {.graph = "0-1"}).file.chain_assumed);
  CHECK_FALSE(file_of("0F0 . 0B0\n").file.chain_assumed);
}

TEST_CASE("edges may come from standard input", "[tools][schedule]") {
  const CommandResult result =
      run_schedule({"make", "dag-gpipe", "--graph", "@-", "--microbatches", "2"}, "0-2\n1-2\n");
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("@edges 0-2,1-2\n"));
}

TEST_CASE("a strategy is no schedule", "[tools][schedule][bad-input]") {
  check_message(run_schedule({"check", "-"}, "split {} dim=MB n=2\nplace {PP:0} on [0]\n"),
                2,
                {"standard input looks like a strategy, expected a schedule", "train --strategy"});
}

TEST_CASE("what cannot be read is exit status 2, with line, column and cell",
          "[tools][schedule][bad-input]") {
  const TemporaryFolder folder;
  const std::string good = "0F0 0B0\n";
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    CAPTURE(text);
    check_message(run_schedule({"check", folder.write("x", text)}), 2, parts);
    check_message(run_schedule({"check", "-"}, text), 2, {"standard input"});
  };
  refused("0F0 0B0\n1F0 what\n", {"line 2, column 5", "'what'"});
  refused("0F0,0B0\n1F0,what\n", {"line 2, column 5", "'what'"});
  refused("@pages 3\n0F0 0B0\n", {"@pages", "line 1"});
  refused("{\"rows\": [", {"JSON"});
  refused("[1, 2]", {"JSON"});
  refused(R"({"rows": [[null]], "lines": []})", {"lines"});
  refused("", {"found nothing"});
  refused(" \n\t\n", {"found nothing"});
  refused("# only a comment\n", {"row"});
  refused(std::string("\x7f\x45\x4c\x46\0\1\2\xff", 8), {"is not a text file: its byte 4 is 0"});
  refused(std::string(100, '\0'), {"is not a text file"});
  refused("\x89PNG\r\n\x1a\n" + std::string(3, '\0') + "\rIHDR",
          {"is not a text file: its byte 8"});
  check_message(run_schedule({"check", "/none/x.txt"}), 2, {"no file at '/none/x.txt'"});
  check_message(run_schedule({"check", folder.path()}), 2, {"a directory at"});
  check_message(run_schedule({"check"}), 2, {"expected FILE"});
  check_message(run_schedule({"check", "a", "b"}), 2, {"'b'"});
  check_message(run_schedule({"check", "-", "--graph", "@-"}, good), 2, {"standard input", "once"});
  check_message(run_schedule({"check", "-", "--graph", "0:1"}, good), 2, {"--graph", "'0:1'"});
  check_message(run_schedule({"check", "-", "--graph", "@/none"}, good), 2, {"'/none'"});
  const std::string no_edges = folder.write("e", "# none\n\n");
  check_message(run_schedule({"check", "-", "--graph", "@" + no_edges}, good), 2, {"--graph"});
}

}  // namespace
}  // namespace stagecraft::tests
