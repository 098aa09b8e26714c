#include "stagecraft/scheduler/render/tikz.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/tests/scheduler/golden.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string timed_tikz(const Schedule& schedule, const PictureOptions& options = {}) {
  const StageGraph graph = schedule.stage_graph();
  const Timeline timeline = simulate(schedule, graph);
  return render_tikz(schedule, graph, &timeline, {}, options);
}

/// Returns the matches of the expression's group, each once, as SVG writes colors.
std::set<std::string> colors_in(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex wanted(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), wanted), end; at != end; ++at) {
    std::string digits = (*at)[1];
    std::ranges::transform(digits, digits.begin(), [](unsigned char c) { return std::tolower(c); });
    found.insert('#' + digits);
  }
  return found;
}

TEST_CASE("a schedule is drawn in TikZ", "[scheduler][render]") {
  const std::string tikz = timed_tikz(one_f_one_b(2, 2), {.title = "1F1B"});
  CHECK_THAT(tikz, ContainsSubstring("\\usepackage{tikz}") && !ContainsSubstring("documentclass"));
  check_golden("one_f_one_b_2_2.tex", tikz);
}

TEST_CASE("TikZ has the colors of the SVG", "[scheduler][render]") {
  for (const ColorBy by : kColorBys) {
    CAPTURE(name(by));
    const Schedule schedule = dualpipev(4, 10);
    const StageGraph graph = schedule.stage_graph();
    const Timeline timeline = simulate(schedule, graph);
    const PictureOptions options{.color_by = by};
    const auto defined = colors_in(timed_tikz(schedule, options),
                                   R"re(\\definecolor\{[a-z0-9]*\}\{HTML\}\{([0-9A-F]*)\})re");
    for (const std::string& color : colors_in(render_svg(schedule, graph, &timeline, {}, options),
                                              R"re(fill="#([0-9a-f]{6})")re")) {
      if (color != "#d3122a") {  // the arrowheads, which this drawing lacks
        CHECK(defined.contains(color));
      }
    }
  }
}

TEST_CASE("nothing in a TikZ picture is wider than asked for", "[scheduler][render]") {
  const std::string tikz = timed_tikz(one_f_one_b(4, 8), {.width = 96 * 10 / 2.54});
  CHECK_THAT(tikz, ContainsSubstring("10.000 cm wide"));
  const std::regex right("rectangle \\(([0-9.]*),");
  std::size_t boxes = 0;
  for (std::sregex_iterator at(tikz.begin(), tikz.end(), right), end; at != end; ++at) {
    CHECK(std::stod((*at)[1]) <= 10);
    ++boxes;
  }
  CHECK(boxes >= 64);
  CHECK_THAT(timed_tikz(one_f_one_b(4, 8)), ContainsSubstring("12.000 cm wide"));
}

TEST_CASE("TeX reads titles as text", "[scheduler][render]") {
  CHECK_THAT(
      timed_tikz(one_f_one_b(2, 1), {.title = "50% of $x_1^2$ & {#} \\end ~"}),
      ContainsSubstring("{50\\% of \\$x\\_1\\^{}2\\$ \\& \\{\\#\\} \\textbackslash{}end \\~{}}"));
}

TEST_CASE("TikZ frames what is wrong and names it in comments", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("0F0 0B0 . .\n. 1F0 1B0 .");
  const StageGraph graph = bad.stage_graph();
  const std::string tikz = render_tikz(bad, graph, nullptr, validate(bad, graph));
  CHECK_THAT(tikz,
             ContainsSubstring("\n% V22") && ContainsSubstring("line width=1.5pt") &&
                 ContainsSubstring("{column}"));
}

TEST_CASE("TikZ draws a cycle's arrows and a timeline's grid as the SVG does",
          "[scheduler][render]") {
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) {
      ++found;
    }
    return found;
  };
  const Schedule dead = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const StageGraph graph = dead.stage_graph();
  const std::vector<Violation> found = validate(dead, graph);
  const std::string tikz = render_tikz(dead, graph, nullptr, found);
  CHECK(count(tikz, "-stealth] (") == 4);
  CHECK(count(tikz, ".. controls (") == 4);
  CHECK(count(tikz, "-stealth] (") ==
        count(render_svg(dead, graph, nullptr, found), "marker-end=\"url(#head)\""));
  CHECK(tikz.find("{D5DAE1}") == std::string::npos);  // positions are not times
  const std::string grid = timed_tikz(one_f_one_b(2, 2));
  CHECK(count(grid, "-stealth") == 0);
  CHECK(grid.find("{D5DAE1}") != std::string::npos);
}

TEST_CASE("narrow cells bear the microbatch alone, in TikZ and SVG alike, and it is said",
          "[scheduler][render]") {
  const Schedule schedule = one_f_one_b(4, 16);
  const StageGraph graph = schedule.stage_graph();
  const Timeline timeline = simulate(schedule, graph);
  const auto both = [&](double width, const std::string& words, bool there) {
    CAPTURE(width, words);
    const PictureOptions options{.width = width};
    CHECK((render_svg(schedule, graph, &timeline, {}, options).find('>' + words + "</text>") !=
           std::string::npos) == there);
    CHECK((render_tikz(schedule, graph, &timeline, {}, options).find('{' + words + "};") !=
           std::string::npos) == there);
  };
  const std::string said = "a number alone is the microbatch, in cells too narrow for a name";
  both(2000, "0F9", true);
  both(2000, said, false);
  both(700, "0F9", false);
  both(700, "9", true);
  both(700, said, true);
}

/// Returns how often each number stands in a cell, and checks that it can be read on paper.
std::map<std::string, int> numbers_in_cells(const std::string& tikz) {
  constexpr double kLegible = 4;    // pt
  constexpr double kOtherText = 8;  // pt, at least: axis, rows and legend
  std::map<std::string, int> found;
  const std::regex wanted(R"re(fontsize\{([0-9.]*)\}[^\n]* \{([0-9]+)\};)re");
  for (std::sregex_iterator at(tikz.begin(), tikz.end(), wanted), end; at != end; ++at) {
    const double size = std::stod((*at)[1]);
    if (size < kOtherText) {
      CHECK(size >= kLegible);
      ++found[(*at)[2]];
    }
  }
  return found;
}

TEST_CASE("cells of ZB-V have text at the usual width", "[scheduler][render]") {
  const Schedule schedule = build_schedule("zb-v", {.devices = 4, .microbatches = 8});
  std::map<std::string, int> microbatches;
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        ++microbatches[std::to_string(task.microbatch.value)];
      }
    }
  }
  CHECK(microbatches.size() == 8);
  const std::string tikz = timed_tikz(schedule);
  CHECK(numbers_in_cells(tikz) == microbatches);
  CHECK_THAT(
      tikz,
      ContainsSubstring("a number alone is the microbatch") && !ContainsSubstring("have no text"));
}

TEST_CASE("cells of 2 pt have no text, which is said", "[scheduler][render]") {
  // A digit of 4 pt is 2 pt wide and 3 pt high, so no text of two digits fits, not even upright.
  const std::string tikz = timed_tikz(build_schedule("zb-v", {.devices = 4, .microbatches = 16}));
  CHECK(numbers_in_cells(tikz).empty());
  CHECK_THAT(tikz, ContainsSubstring("cells too narrow for a name have no text"));
}

TEST_CASE("a TikZ picture of a million cells is refused", "[scheduler][render]") {
  const Schedule large = one_f_one_b(4, 20'000);
  CHECK_THROWS_AS(render_tikz(large, large.stage_graph(), nullptr), Error);
}

}  // namespace
}  // namespace stagecraft
