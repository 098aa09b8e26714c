#include "stagecraft/scheduler/render/svg.h"

#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/render/tikz.h"
#include "stagecraft/tests/scheduler/golden.h"
#include "stagecraft/tests/scheduler/occurrences.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string drawn(const Schedule& schedule) {
  const StageGraph graph = schedule.stage_graph();
  return render_svg(schedule, graph, nullptr, validate(schedule, graph));
}

TEST_CASE("a schedule is drawn with one box per entry", "[scheduler][render]") {
  const std::string svg = drawn(one_f_one_b(2, 2));
  CHECK(occurrences(svg, "class=\"entry\"") == 8);
  check_golden("one_f_one_b_2_2.svg", svg);
}

TEST_CASE("offending cells are framed in red and named below", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("0F0 0B0 . .\n. 1F0 1B0 .");
  const std::string svg = drawn(bad);
  CHECK(occurrences(svg, "class=\"bad\"") == 2);
  CHECK_THAT(svg, ContainsSubstring("V22"));
}

TEST_CASE("a deadlock's cycle is drawn with one arrow per step", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const std::string svg = drawn(bad);
  CHECK(occurrences(svg, "marker-end") == 4);
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
  CHECK(occurrences(columns, "class=\"surplus\"") == 2);
  CHECK_THAT(columns,
             ContainsSubstring("0B1, 0B1 does nothing on row 0, column 5") &&
                 ContainsSubstring("in empty boxes, 2 tasks do nothing: 2 B of stage 0"));
  const Timeline timeline = simulate(schedule, graph);
  CHECK(occurrences(render_svg(schedule, graph, &timeline), "class=\"surplus\"") == 2);
  CHECK(occurrences(render_svg(schedule, schedule.stage_graph(), nullptr), "class=\"surplus\"") ==
        0);
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

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  const std::regex wanted(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), wanted), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

std::string timed(const Schedule& schedule,
                  const Durations& durations = {},
                  const PictureOptions& options = {}) {
  const StageGraph graph = schedule.stage_graph();
  Costs costs;
  costs.stages.usual = durations;
  const Timeline timeline = simulate(schedule, graph, costs);
  return render_svg(schedule, graph, &timeline, {}, options);
}

TEST_CASE("a picture has a title, an axis of time with ticks, and a legend",
          "[scheduler][render]") {
  const std::string svg = timed(one_f_one_b(2, 2), {}, {.title = "Mine & yours"});
  CHECK_THAT(svg,
             ContainsSubstring(R"(class="title">Mine &amp; yours</text>)") &&
                 ContainsSubstring(">time</text>") && ContainsSubstring(">stage 1</text>") &&
                 ContainsSubstring(">F forward</text>") && ContainsSubstring(">B backward</text>"));
  const auto labels = matches(svg, R"(class="axis">([^<]*)<)");
  REQUIRE(labels.size() > 3);
  CHECK(labels.front() == "0");
  CHECK(occurrences(svg, R"(class="tick")") == labels.size());
  CHECK_THAT(drawn(one_f_one_b(2, 2)), ContainsSubstring(">column</text>"));
}

TEST_CASE("durations move and stretch what is drawn", "[scheduler][render]") {
  const auto ratio = [](const Durations& durations) {
    const auto widths = matches(timed(one_f_one_b(2, 2), durations, {.width = 640}),
                                R"re(<title>0[FB]0 on[^<]*</title><rect[^>]* width="([0-9.]*)")re");
    REQUIRE(widths.size() == 2);
    return (std::stod(widths[1]) + 1) / (std::stod(widths[0]) + 1);  // a gap of one pixel
  };
  CHECK(ratio({}) == Catch::Approx(2).margin(0.02));
  CHECK(ratio({.forward = 3, .backward = 5}) == Catch::Approx(5. / 3).margin(0.02));
}

TEST_CASE("a legend has exactly the colors that are drawn", "[scheduler][render]") {
  for (const Schedule& schedule : {one_f_one_b(4, 8), dualpipev(4, 10), one_f_one_b(16, 20)}) {
    for (const ColorBy by : kColorBys) {
      CAPTURE(name(by), schedule.stages());
      const std::string svg = timed(schedule, {}, {.color_by = by});
      const auto fills = matches(svg, R"re(<rect x="[^>]*[0-9]" fill="(#[^"]*)")re");
      const std::set<std::string> boxes(fills.begin(), fills.end());
      const auto swatches = matches(svg, R"re(class="swatch" fill="(#[^"]*)")re");
      REQUIRE(swatches.size() > 2);
      CHECK(swatches.back() == matches(svg, R"re(class="row" fill="(#[^"]*)")re").front());
      for (std::size_t i = 0; i + 1 < swatches.size(); ++i) {
        CHECK(boxes.contains(swatches[i]));
      }
      // There are so few kinds that each is explained.
      if (by == ColorBy::Kind) {
        CHECK(std::set(swatches.begin(), swatches.end() - 1) == boxes);
      }
    }
  }
}

TEST_CASE("a legend leaves out what is drawn as an empty box", "[scheduler][render][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0, 1});
  const std::string svg = render_svg(one_f_one_b(2, 2), graph, nullptr);
  CHECK(occurrences(svg, "class=\"surplus\"") == 4);
  CHECK_THAT(svg, !ContainsSubstring("B backward"));
}

TEST_CASE("a picture is as wide as asked for, and no text leaves its cell", "[scheduler][render]") {
  const std::regex named_box(R"re(<rect x="([0-9.]*)"[^>]* width="([0-9.]*)"[^>]*/>)re"
                             R"re(<text [^>]*font-size:([0-9.]*)px[^>]*>([^<]*)<)re");
  for (const double width : {312.0, 605.0, 1200.0}) {
    for (const Schedule& schedule : {one_f_one_b(4, 8), dualpipev(4, 16), one_f_one_b(8, 100)}) {
      CAPTURE(width, schedule.columns());
      const std::string svg = timed(schedule, {}, {.width = width});
      CHECK(matches(svg, R"re(<svg[^>]* width="([0-9]*)")re").front() ==
            fmt::format("{:.0f}", width));
      std::size_t named = 0;
      for (std::sregex_iterator at(svg.begin(), svg.end(), named_box), end; at != end; ++at) {
        const std::smatch& m = *at;
        // DejaVu Sans is the widest font in use: digits 0.636 em, F 0.575, B 0.686.
        CHECK(0.65 * std::stod(m[3]) * static_cast<double>(m[4].length()) <= std::stod(m[2]));
        CHECK(std::stod(m[3]) >= 5);
        ++named;
      }
      const std::size_t tasks = matches(svg, R"re((<rect x="[^>]*[0-9]" fill=))re").size();
      CHECK((named < tasks) == (svg.find(" have no text") != std::string::npos));
      for (const std::string& left : matches(svg, R"re(<rect x="([0-9.]*)")re")) {
        CHECK(std::stod(left) < width);
      }
    }
  }
}

TEST_CASE("names of one kind are drawn all, or none (FG-2)", "[scheduler][render]") {
  BuildRequest request{.devices = 4, .microbatches = 16};
  const Schedule schedule = build_schedule("zb-v", request);
  for (const double width : {453.5, 700.0, 900.0, 1600.0}) {
    CAPTURE(width);
    const std::string svg = timed(schedule, {}, {.width = width});
    const std::size_t named = occurrences(svg, "style=\"font-size:");
    CHECK((named == 0 || named == 4 * 2 * 16 * 3));
  }
  CHECK(occurrences(timed(schedule, {}, {.width = 453.5}), "style=\"font-size:") == 0);
  CHECK(occurrences(timed(schedule, {}, {.width = 1600}), "style=\"font-size:") > 0);
}

TEST_CASE("a picture whose width is left open fits a screen", "[scheduler][render]") {
  const auto width = [](const Schedule& schedule) {
    return std::stod(matches(timed(schedule), R"re(<svg[^>]* width="([0-9]*)")re").front());
  };
  CHECK(width(one_f_one_b(2, 2)) < 700);
  CHECK(width(one_f_one_b(4, 100)) == kWidestUsual);
}

TEST_CASE("legend, idle shares, names and title can be left out", "[scheduler][render]") {
  const std::string all =
      timed(one_f_one_b(2, 2), {}, {.title = "Mine", .width = kNarrowestPicture});
  CHECK_THAT(all,
             ContainsSubstring("% idle") && ContainsSubstring("class=\"swatch\"") &&
                 ContainsSubstring("style=\"font-size:") && ContainsSubstring("class=\"title\""));
  const std::string bare =
      timed(one_f_one_b(2, 2), {}, {.width = 300, .legend = false, .idle = false, .names = false});
  CHECK_THAT(bare,
             !ContainsSubstring("% idle") && !ContainsSubstring("class=\"swatch\"") &&
                 !ContainsSubstring(">0F0<") && !ContainsSubstring("class=\"title\"") &&
                 !ContainsSubstring("no text"));
  CHECK(occurrences(bare, "class=\"entry\"") == 8);
}

TEST_CASE("several schedules share axis, colors and legend", "[scheduler][render]") {
  const Schedule first = one_f_one_b(2, 2);
  const Schedule second = one_f_one_b(2, 4);
  const StageGraph graph = first.stage_graph();
  const Timeline short_one = simulate(first, graph);
  const Timeline long_one = simulate(second, graph);
  const std::vector<Panel> panels{{&first, &graph, &short_one, {}, "two & two"},
                                  {&second, &graph, &long_one, {}, "four"}};
  const std::string svg = render_svg(panels, {.width = 600});
  CHECK_THAT(svg,
             ContainsSubstring(">two &amp; two</text>") && ContainsSubstring(">four</text>") &&
                 ContainsSubstring("0F0 on row 0 of two &amp; two, 0 to 1"));
  CHECK(occurrences(svg, ">time</text>") == 1);
  CHECK(occurrences(svg, ">F forward</text>") == 1);
  CHECK(occurrences(svg, "class=\"entry\"") == 8 + 16);
  // Equal times have equal places.
  const auto places = matches(svg, R"re(<title>0F0 on [^<]*</title><rect x="([0-9.]*)")re");
  REQUIRE(places.size() == 2);
  CHECK(places[0] == places[1]);
  const auto widths =
      matches(svg, R"re(<title>0F0 on [^<]*</title><rect [^>]*width="([0-9.]*)")re");
  CHECK(widths[0] == widths[1]);
  const auto rows = matches(svg, R"re(width="([0-9.]*)" height="[0-9.]*" class="row")re");
  REQUIRE(rows.size() == 4);
  CHECK(std::stod(rows[0]) / std::stod(rows[2]) ==
        Catch::Approx(short_one.makespan / long_one.makespan).margin(0.01));
  const std::string tikz = render_tikz(panels);
  CHECK_THAT(tikz, ContainsSubstring("{two \\& two}") && ContainsSubstring("{four}"));
  CHECK(occurrences(tikz, "{time}") == 1);
}

TEST_CASE("an update that takes no time has a box behind its row", "[scheduler][render]") {
  const Schedule schedule = Schedule::parse("0F0 0F1 . 0B0 . 0B1 0U\n. 1F0 1B0 1F1 1B1 . 1U");
  const std::string svg = timed(schedule, {}, {.width = 500});
  CHECK_THAT(svg, ContainsSubstring(">0U</text>") && ContainsSubstring(">U update</text>"));
  const auto edges = matches(svg, R"re(<title>0B1 on [^<]*</title><rect x="([0-9.]*)")re");
  const auto update = matches(svg, R"re(<title>0U on [^<]*</title><rect x="([0-9.]*)")re");
  const auto wide = matches(svg, R"re(<title>0U on [^<]*</title><rect [^>]*width="([0-9.]*)")re");
  REQUIRE((edges.size() == 1 && update.size() == 1 && wide.size() == 1));
  CHECK(std::stod(update[0]) > std::stod(edges[0]));
  CHECK(std::stod(wide[0]) > 20);
}

TEST_CASE("many updates that take no time leave room for the tasks", "[scheduler][render]") {
  constexpr int kStages = 60;
  std::string row;
  for (int s = 0; s < kStages; ++s) {
    row += fmt::format("{}F0 ", s);
  }
  for (int s = kStages - 1; s >= 0; --s) {
    row += fmt::format("{}B0 ", s);
  }
  for (int s = 0; s < kStages; ++s) {
    row += fmt::format("{}U ", s);
  }
  const Schedule schedule = Schedule::parse(row);
  const std::vector<std::optional<double>> widths{std::nullopt, kNarrowestPicture, 605.0};
  for (const std::optional<double>& width : widths) {
    CAPTURE(width.value_or(0));
    const std::string svg = timed(schedule, {}, {.width = width});
    const double whole = std::stod(matches(svg, R"re(<svg[^>]* width="([0-9]*)")re").front());
    const auto lefts = matches(svg, R"re(</title><rect x="([0-9.]*)")re");
    REQUIRE(lefts.size() == std::size_t{3} * kStages);
    double before = 0;
    for (const std::string& left : lefts) {
      CHECK(std::stod(left) > before);
      CHECK(std::stod(left) < whole);
      before = std::stod(left);
    }
  }
}

TEST_CASE("a panel's name that is too long keeps its end", "[scheduler][render]") {
  const Schedule schedule = one_f_one_b(2, 2);
  const StageGraph graph = schedule.stage_graph();
  std::string folder;
  for (int i = 0; i < 150; ++i) {
    folder += "\xC3\xA9";  // one character
  }
  const std::vector<Panel> panels{{&schedule, &graph, nullptr, {}, folder + "/1f1b.txt"},
                                  {&schedule, &graph, nullptr, {}, "short"}};
  for (const std::string& picture :
       {render_svg(panels, {.width = 400}), render_tikz(panels, {.width = 400})}) {
    CHECK(matches(picture, "[>{]\\.\\.\\.((\xC3\xA9)+/1f1b\\.txt)[<}]").size() == 1);
    CHECK(matches(picture, R"re([>{](short)[<}])re").size() == 1);
  }
}

TEST_CASE("a picture of a million cells is refused", "[scheduler][render]") {
  CHECK_THROWS_AS(drawn(one_f_one_b(4, 20'000)), Error);
}

}  // namespace
}  // namespace stagecraft
