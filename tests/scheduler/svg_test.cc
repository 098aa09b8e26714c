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

std::string drawn(const Schedule& schedule) {
  const StageGraph graph = schedule.stage_graph();
  return render_svg(schedule, graph, nullptr, validate(schedule, graph));
}

TEST_CASE("a schedule is drawn with one box per entry", "[scheduler][render]") {
  const std::string svg = drawn(one_f_one_b(2, 2));
  CHECK(count(svg, "class=\"entry\"") == 8);
  check_golden("one_f_one_b_2_2.svg", svg);
}

TEST_CASE("offending cells are framed in red and named below", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("0F0 0B0 . .\n. 1F0 1B0 .");
  const std::string svg = drawn(bad);
  CHECK(count(svg, "class=\"bad\"") == 2);
  CHECK_THAT(svg, ContainsSubstring("V22"));
}

TEST_CASE("a deadlock's cycle is drawn with one arrow per step", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const std::string svg = drawn(bad);
  CHECK(count(svg, "marker-end") == 4);
}

TEST_CASE("long messages are broken into lines", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const std::string svg = drawn(bad);
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
  Costs milliseconds;
  milliseconds.stages.usual = {.forward = 0.001, .backward = 0.002};
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), milliseconds);
  const std::string svg = render_svg(schedule, schedule.stage_graph(), &timeline);
  CHECK_THAT(svg, ContainsSubstring(">0F0</text>") && ContainsSubstring("0.004 to 0.006"));
}

TEST_CASE("a timeline draws boxes as long as they take", "[scheduler][render]") {
  const Schedule schedule = one_f_one_b(2, 2);
  const Timeline timeline = simulate(schedule, schedule.stage_graph());
  const std::string svg = render_svg(schedule, schedule.stage_graph(), &timeline);
  CHECK_THAT(svg, ContainsSubstring("0B0 on row 0, 4 to 6") && ContainsSubstring("33.3% idle"));
}

TEST_CASE("what does nothing is an empty box, said on hover and below",
          "[scheduler][render][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0});
  const Schedule schedule = one_f_one_b(2, 2);
  const std::string columns = render_svg(schedule, graph, nullptr);
  CHECK(count(columns, "class=\"surplus\"") == 2);
  CHECK_THAT(columns,
             ContainsSubstring("0B1, 0B1 does nothing on row 0, column 5") &&
                 ContainsSubstring("in empty boxes, 2 tasks do nothing: 2 B of stage 0"));
  const Timeline timeline = simulate(schedule, graph);
  CHECK(count(render_svg(schedule, graph, &timeline), "class=\"surplus\"") == 2);
  CHECK(count(render_svg(schedule, schedule.stage_graph(), nullptr), "class=\"surplus\"") == 0);
}

TEST_CASE("both members of a group are drawn", "[scheduler][render]") {
  const std::string svg = drawn(dualpipev(2, 4));
  CHECK_THAT(svg, ContainsSubstring(">0F3</text>") && ContainsSubstring("0F3|3B1 on row 0"));
}

TEST_CASE("text cannot break out of the picture", "[scheduler][render]") {
  StageGraph graph = StageGraph::chain(2);
  graph.add_tied({.name = "<script>&", .stages = {StageId(0), StageId(1)}});
  const Schedule schedule = one_f_one_b(2, 1);
  const std::string svg = render_svg(schedule, graph, nullptr, validate(schedule, graph));
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK_THAT(svg, ContainsSubstring("&lt;script&gt;&amp;"));
}

TEST_CASE("a picture of a million cells is refused", "[scheduler][render]") {
  CHECK_THROWS_AS(drawn(one_f_one_b(4, 20'000)), Error);
}

}  // namespace
}  // namespace stagecraft
