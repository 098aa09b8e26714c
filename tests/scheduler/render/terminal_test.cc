#include "stagecraft/scheduler/render/terminal.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/render/terminal_colors.h"
#include "stagecraft/tests/scheduler/golden.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string drawn_on_terminal(const char* text, const RenderOptions& options = {}) {
  const Schedule schedule = Schedule::parse(text);
  return render(schedule, validate(schedule, schedule.stage_graph()), options);
}

TEST_CASE("a valid grid is drawn with its columns numbered", "[scheduler][render]") {
  check_golden("one_f_one_b_4_8.txt", render(one_f_one_b(4, 8)));
}

TEST_CASE("offending cells stand in brackets and their rules below", "[scheduler][render]") {
  check_golden("late_gradient.txt", drawn_on_terminal("0F0 0F1 0B0 . . 0B1\n. 1F0 1B0 1F1 1B1 ."));
}

TEST_CASE("a deadlock is drawn as its cycle", "[scheduler][render]") {
  check_golden("deadlock.txt", drawn_on_terminal("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"));
}

TEST_CASE("what does nothing stands in parentheses and is explained below",
          "[scheduler][render][surplus]") {
  check_golden(
      "frozen.txt",
      drawn_on_terminal(
          "@form list\n@frozen 0\n0F0 0F1|0B0 0B1\n1F0 1I0|1F1 1I1 1W0 1W1\n2F0 2B0 2F1 2B1"));
  // Faults are marked and in parentheses in color too.
  check_golden("frozen_wrong_color.txt",
               drawn_on_terminal("@frozen 0\n0B0 0F0 .\n. 1F0 1B0", {.color = true}));
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0});
  const Schedule schedule = one_f_one_b(2, 1);
  CHECK_THAT(render(schedule, {}, {.graph = &graph}), ContainsSubstring("(0B0)"));
  CHECK(render(schedule).find('(') == std::string::npos);
}

TEST_CASE("a grid wider than the terminal continues below", "[scheduler][render]") {
  const std::string text = render(one_f_one_b(4, 8), {}, {.width = 40});
  check_golden("one_f_one_b_4_8_width_40.txt", text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 40);
  }
}

TEST_CASE("colors are off unless asked for", "[scheduler][render]") {
  CHECK(render(one_f_one_b(2, 2)).find('\x1b') == std::string::npos);
  check_golden("late_gradient_color.txt",
               drawn_on_terminal("0F0 0B0 . .\n. 1F0 1B0 .", {.color = true}));
}

TEST_CASE("more stages than easy hues have colors of their own", "[scheduler][render]") {
  for (const int stages : {1, 12, 13, 16, 24, 32, kTerminalRamp}) {
    CAPTURE(stages);
    std::set<int> seen;
    for (int stage = 0; stage < stages; ++stage) {
      const int color = terminal_color(stage, stages);
      CHECK(color >= 16);
      CHECK(color <= 231);
      CHECK(seen.insert(color).second);
    }
  }
  CHECK(terminal_color(0, 65536) != terminal_color(32768, 65536));
  CHECK_NOTHROW(terminal_color(-1, 65536));
  CHECK_NOTHROW(terminal_color(65536, 13));
}

TEST_CASE("both stages of a device differ in a terminal", "[scheduler][render]") {
  const Schedule schedule = interleaved(12, 12, 2);
  const std::string text = render(schedule, {}, {.color = true});
  const auto color_of = [&](const std::string& task) {
    const std::size_t name = text.find('m' + task + '\x1b');
    REQUIRE(name != std::string::npos);
    return text.substr(text.rfind(';', name), name - text.rfind(';', name));
  };
  for (int stage = 0; stage < 12; ++stage) {
    CHECK(color_of(fmt::format("{}F0", stage)) != color_of(fmt::format("{}F0", stage + 12)));
  }
  CHECK(render(schedule).find('\x1b') == std::string::npos);
}

TEST_CASE("a long schedule is cut but its marked cells are shown", "[scheduler][render]") {
  const Schedule good = one_f_one_b(2, 2000);
  auto rows = good.rows();
  rows[1][3500] = cells::idle;
  const Schedule bad(Schedule::Form::Array, rows);
  const std::string text = render(bad, validate(bad, bad.stage_graph()));
  CHECK(text.size() < 20'000);
  CHECK_THAT(text,
             ContainsSubstring("not shown") && ContainsSubstring("[") && ContainsSubstring("V22"));
}

TEST_CASE("many violations are counted, not all listed", "[scheduler][render]") {
  const std::vector<Violation> many(52, Violation{.rule = "V20", .message = "too early"});
  const std::string text = render(Schedule::parse("0F0"), many);
  CHECK_THAT(text, ContainsSubstring("V20: too early\n... and 2 more"));
}

TEST_CASE("narrow terminals and odd schedules are drawn too", "[scheduler][render]") {
  CHECK_NOTHROW(render(one_f_one_b(2, 2), {}, {.width = 0}));
  CHECK_NOTHROW(render(Schedule(Schedule::Form::Array, {}),
                       validate(Schedule(Schedule::Form::Array, {}), StageGraph::chain(1))));
  CHECK_NOTHROW(drawn_on_terminal("@stages 3\n0F0 0F0\n."));
}

}  // namespace
}  // namespace stagecraft
