#include "stagecraft/scheduler/render/svg.h"

#include <sstream>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/scheduler/golden.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

TEST_CASE("a schedule is drawn with one box per entry", "[scheduler][render]") {
  const std::string svg = render_svg(one_f_one_b(2, 2));
  CHECK(count(svg, "class=\"entry\"") == 8);
  check_golden("one_f_one_b_2_2.svg", svg);
}

TEST_CASE("offending cells are framed in red and named below", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("0F0 0B0 . .\n. 1F0 1B0 .");
  const std::string svg = render_svg(bad, validate(bad, bad.stage_graph()));
  CHECK(count(svg, "class=\"bad\"") == 2);
  CHECK_THAT(svg, ContainsSubstring("V22"));
}

TEST_CASE("a deadlock's cycle is drawn with one arrow per step", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const std::string svg = render_svg(bad, validate(bad, bad.stage_graph()));
  CHECK(count(svg, "marker-end") == 4);
}

TEST_CASE("long messages are broken into lines", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const std::string svg = render_svg(bad, validate(bad, bad.stage_graph()));
  std::istringstream lines(svg);
  std::size_t texts = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("bad-text\">") != std::string::npos) {
      ++texts;
      CHECK(line.size() < 200);
    }
  }
  CHECK(texts > 1);
}

TEST_CASE("boxes are wide enough for names, whatever the unit of time", "[scheduler][render]") {
  const Schedule schedule = one_f_one_b(2, 2);
  CostModel milliseconds;
  milliseconds.usual = {.forward = 0.001, .backward = 0.002};
  const std::string svg =
      render_svg(schedule, simulate(schedule, schedule.stage_graph(), milliseconds));
  CHECK_THAT(svg, ContainsSubstring(">0F0</text>") && ContainsSubstring("0.004 to 0.006"));
}

TEST_CASE("a timeline draws boxes as long as they take", "[scheduler][render]") {
  const Schedule schedule = one_f_one_b(2, 2);
  const std::string svg = render_svg(schedule, simulate(schedule, schedule.stage_graph()));
  CHECK_THAT(svg, ContainsSubstring("0B0 on row 0, 4 to 6") && ContainsSubstring("33.3% idle"));
}

TEST_CASE("both members of a group are drawn", "[scheduler][render]") {
  const std::string svg = render_svg(dualpipev(2, 4));
  CHECK_THAT(svg, ContainsSubstring(">0F3</text>") && ContainsSubstring("0F3|3B1 on row 0"));
}

TEST_CASE("text cannot break out of the picture", "[scheduler][render]") {
  StageGraph graph = StageGraph::chain(2);
  graph.add_tied({.name = "<script>&", .stages = {StageId(0), StageId(1)}});
  const Schedule schedule = one_f_one_b(2, 1);
  const std::string svg = render_svg(schedule, validate(schedule, graph));
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK_THAT(svg, ContainsSubstring("&lt;script&gt;&amp;"));
}

TEST_CASE("a picture of a million cells is refused", "[scheduler][render]") {
  CHECK_THROWS_AS(render_svg(one_f_one_b(4, 20'000)), Error);
}

}  // namespace
}  // namespace stagecraft
