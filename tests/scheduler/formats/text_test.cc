#include "stagecraft/scheduler/formats/text.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using namespace cells;
using Catch::Matchers::ContainsSubstring;

/// Returns the message of the Error that parsing `text` throws.
std::string text_complaint(const std::string& text) {
  return refusal([&] { (void)Schedule::parse(text); }, Errc::ScheduleParse);
}

TEST_CASE("text may have comments, blank lines, tabs and CRLF", "[scheduler][text]") {
  const Schedule parsed = Schedule::parse("# two rows\r\n\r\n0F0\t0B0 # done\r\n1F0 1B0\r\n");
  CHECK(parsed == Schedule{{F(0, 0), B(0, 0)}, {F(1, 0), B(1, 0)}});
}

TEST_CASE("groups, updates and cells without a stage are read", "[scheduler][text]") {
  const Schedule parsed = Schedule::parse("0F7|7B3 0U\nF2 I2");
  CHECK(parsed == Schedule{{overlap(F(0, 7), B(7, 3)), U(0)}, {F(1, 2), I(1, 2)}});
}

TEST_CASE("headers are kept", "[scheduler][text]") {
  const Schedule parsed = Schedule::parse(
      "@form list\n@rows 3\n@stages 3\n@microbatches 4\n@edges 0-2, 1-2\n0F0\n1F0\n2F0\n");
  CHECK(parsed.form() == Schedule::Form::List);
  CHECK(parsed.headers().rows == 3);
  CHECK(parsed.stages() == 3);
  CHECK(parsed.microbatches() == 4);
  CHECK(parsed.stage_graph().edges() == std::vector<StageGraph::Edge>{{0, 2}, {1, 2}});
}

TEST_CASE("what is printed parses back to the same schedule", "[scheduler][text]") {
  const char* text = GENERATE("0F0 0F1 .   0B0 .   0B1\n.   1F0 1B0 1F1 1B1 .\n",
                              "@form list\n@rows 2\n@microbatches 12\n0F0|1B0 0F11\n.\n",
                              "@edges 0-1,2-3\n@replicas 0=2,1=3\n0F0 . 3F0\n2F0 1F0\n",
                              "@edges 0-1,1-2\n0F0\n1F0\n",
                              "@stages 3\n@edges\n0F0\n1F0\n");
  const Schedule once = Schedule::parse(text);
  const Schedule twice = Schedule::parse(to_string(once));
  CHECK(once == twice);
  CHECK(to_string(once) == to_string(twice));
  CHECK(once.stage_graph().size() == twice.stage_graph().size());
  CHECK(once.stage_graph().edges() == twice.stage_graph().edges());
  CHECK(once.stage_graph().replica_pairs() == twice.stage_graph().replica_pairs());
  CHECK(once.microbatches() == twice.microbatches());
}

TEST_CASE("a graph of more stages than the cells and edges name keeps them in the text",
          "[scheduler][text]") {
  const Schedule schedule(
      Schedule::Form::List, {{F(0, 0)}}, {.graph = StageGraph::from_edges(4, {{0, 1}})});
  CHECK(Schedule::parse(to_string(schedule)).stage_graph().size() == 4);
  const Schedule chain(Schedule::Form::List, {{F(0, 0)}}, {.graph = StageGraph::chain(2)});
  CHECK(Schedule::parse(to_string(chain)).stage_graph().size() == 2);
}

TEST_CASE("ragged rows are a rule's business, not the parser's", "[scheduler][text]") {
  CHECK(Schedule::parse("0F0 0B0\n1F0").rows()[1].size() == 1);
}

TEST_CASE("a cell outside the grammar is named with its line and column", "[scheduler][text]") {
  CHECK_THAT(text_complaint("0F0 0B0\n. 1F0 1X0"),
             ContainsSubstring("line 2, column 7") && ContainsSubstring("'1X0'"));
  CHECK_THAT(text_complaint("0f3"), ContainsSubstring("'0F3'"));
  const char* bad = GENERATE("0F",
                             "F",
                             "0F0junk",
                             "0F3.5",
                             "0F-1",
                             "-1F0",
                             "0F0|",
                             "|",
                             "0F0||0B0",
                             "0U3",
                             "0",
                             "99999999999F0",
                             "0F99999999999",
                             "65536F0",
                             "0F16777216",
                             "0F0,0B0");
  CAPTURE(bad);
  CHECK_THAT(text_complaint(bad), ContainsSubstring("line 1, column"));
}

TEST_CASE("all cells outside the grammar are told at once, and what to do once",
          "[scheduler][text]") {
  const std::string all = text_complaint("@pages 3\n0F0 WHAT 0B0\n1F0 1X0 1b0\n");
  CHECK_THAT(all, ContainsSubstring("4 faults\nline 1, column 1: unknown header '@pages'"));
  CHECK_THAT(all, ContainsSubstring("\nline 2, column 5: 'WHAT'"));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 5: '1X0' is not a cell\n"));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 9: '1b0'"));
  CHECK(all.find("a cell is '.'") == all.rfind("a cell is '.'"));
  std::string many;
  for (int i = 0; i < 100; ++i) {
    many += "what ";
  }
  const std::string bounded = text_complaint(many);
  CHECK_THAT(bounded, ContainsSubstring("100 faults\n") && ContainsSubstring("line 1, column 96:"));
  CHECK_THAT(bounded, !ContainsSubstring("column 101:") && ContainsSubstring("\nand 80 more"));
}

TEST_CASE("numbers that no schedule has are too large, and the limit is said",
          "[scheduler][text]") {
  for (const char* large : {"0F999999999999999999", "99999999999F0", "65536F0", "0F16777216"}) {
    CAPTURE(large);
    CHECK_THAT(text_complaint(large),
               ContainsSubstring("is too large") && ContainsSubstring("up to 65535") &&
                   ContainsSubstring("up to 16777215"));
  }
}

TEST_CASE("@frozen says which stages do not train", "[scheduler][text][surplus]") {
  const char* text = "@frozen 0,2\n0F0 . . . . 0B0\n. 1F0 . . 1B0 .\n. . 2F0 2B0 . .\n";
  const Schedule schedule = Schedule::parse(text);
  const StageGraph graph = schedule.stage_graph();
  CHECK(graph.frozen() == std::vector<int>{0, 2});
  CHECK_FALSE(graph.has_backward(StageId(0)));
  CHECK(graph.needs_input_grad(StageId(2)));
  CHECK(graph.is_chain());
  CHECK(Schedule::parse(to_string(schedule)).stage_graph().frozen() == graph.frozen());
  CHECK_THAT(to_string(schedule), ContainsSubstring("@frozen 0,2\n"));
  CHECK(Schedule::parse("@edges 0-2,1-2\n@frozen 1\n0F0\n1F0\n2F0").stage_graph().frozen() ==
        std::vector<int>{1});
  CHECK(Schedule::parse("@replicas 0=2,1=3\n@edges 0-1,2-3\n@frozen 3\n0F0\n1F0\n2F0\n3F0")
            .stage_graph()
            .frozen() == std::vector<int>{1, 3});
}

TEST_CASE("a header that cannot be understood is refused", "[scheduler][text]") {
  const char* bad = GENERATE("@color red\n0F0",
                             "@form table\n0F0",
                             "@rows\n0F0",
                             "@rows 0\n0F0",
                             "@stages x\n0F0",
                             "@microbatches -1\n0F0",
                             "@edges 0>1\n0F0",
                             "@edges 0-\n0F0",
                             "@replicas 0-1\n0F0",
                             "@form array\n@form list\n0F0",
                             "0F0\n@rows 1",
                             "@stages 2\n@edges 0-5\n0F0",
                             "@replicas 0=0\n0F0",
                             "@edges 0-99999999\n0F0",
                             "@stages 100000\n0F0",
                             "@frozen\n0F0",
                             "@frozen x\n0F0",
                             "@frozen 0 1\n0F0",
                             "@frozen -1\n0F0",
                             "@frozen 5\n0F0",
                             "@frozen 0\n@frozen 0\n0F0",
                             "@replicas 0=1,1=0\n0F0 1F0",
                             "@replicas 0=1,0=2\n0F0 1F0 2F0");
  CAPTURE(bad);
  CHECK_THAT(text_complaint(bad), ContainsSubstring("line "));
}

TEST_CASE("a mistyped header is answered with the nearest", "[scheduler][text]") {
  CHECK_THAT(text_complaint("0F0\n  @stage 2\n"), ContainsSubstring("line 2, column 3"));
  CHECK_THAT(text_complaint("@stage 2\n0F0\n"), ContainsSubstring("did you mean @stages?"));
}

TEST_CASE("a text without rows is refused", "[scheduler][text]") {
  CHECK_THAT(text_complaint(""), ContainsSubstring("no row"));
  CHECK_THAT(text_complaint("# nothing\n@rows 2\n"), ContainsSubstring("no row"));
}

TEST_CASE("a number in a file buys no memory", "[scheduler][text]") {
  CHECK_THAT(text_complaint("@rows 2000000000\n0F0"),
             ContainsSubstring("line 1") && ContainsSubstring("65536"));
  CHECK_THAT(text_complaint("@stages 2000000000\n0F0"), ContainsSubstring("65536"));
  CHECK_THAT(text_complaint("@microbatches 2000000000\n0F0"), ContainsSubstring("16777216"));
  CHECK_THAT(text_complaint("@edges 0-65536\n0F0"), ContainsSubstring("65536"));
  CHECK_THAT(text_complaint("@replicas 0=99999999999\n0F0"), ContainsSubstring("99999999999"));
  CHECK(Schedule::parse("@edges 0-65535\n0F0").stage_graph().size() == 65536);
  CHECK(Schedule::parse("@microbatches 16777216\n0F0").microbatches() == 16777216);
}

TEST_CASE("more rows or cells than a schedule has are refused", "[scheduler][text]") {
  std::string rows;
  for (int r = 0; r <= kMaxStages; ++r) {
    rows += ".\n";
  }
  CHECK_THAT(text_complaint(rows),
             ContainsSubstring("line 65537, column 1") && ContainsSubstring("at most 65536 rows"));
  std::string dots;
  for (std::size_t c = 0; c <= kMaxCells; ++c) {
    dots += ". ";
  }
  CHECK_THAT(text_complaint(dots), ContainsSubstring("16777216 cells"));
}

TEST_CASE("unprintable input is shown harmless and short", "[scheduler][text]") {
  const std::string message = text_complaint(std::string("0F\x1b[31m") + std::string(5000, 'x'));
  CHECK(message.size() < 400);
  CHECK(message.find('\x1b') == std::string::npos);
}

TEST_CASE("edges on a command line make a stage graph", "[scheduler][text]") {
  CHECK(parse_stage_graph("0-2,1-2").size() == 3);
  CHECK_THROWS_AS(parse_stage_graph("0-2,x"), Error);
}

}  // namespace
}  // namespace stagecraft
