#include "stagecraft/tools/schedule/report/sweep_plot.h"

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

PlotLine plotted(const std::string& name, double bubble = 0.2) {
  return {.name = name, .points = {{8, bubble}, {16, bubble / 2}, {32, bubble / 4}}};
}

TEST_CASE("a plot has a logarithmic axis from the fewest to the most microbatches",
          "[tools][schedule]") {
  const std::string svg = plot_svg({plotted("1f1b", 0.2)});
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  // The points are at equal distances, in half of the height each time.
  CHECK_THAT(svg, ContainsSubstring("points='56.0,36.0 316.0,186.0 576.0,261.0'"));
  CHECK_THAT(svg, ContainsSubstring("<title>1f1b: 8 microbatches, 20.0%</title>"));
}

TEST_CASE("one point is drawn in the middle", "[tools][schedule]") {
  const std::string svg = plot_svg({{.name = "serial", .points = {{1, 0}}}});
  CHECK_THAT(svg, ContainsSubstring("points='316.0,336.0'"));
  CHECK_THAT(svg, ContainsSubstring("serial: 1 microbatch, 0.0%"));
  CHECK_THAT(svg, !ContainsSubstring("nan") && !ContainsSubstring("inf"));
}

TEST_CASE("the axis of bubbles ends at its first step that no bubble exceeds",
          "[tools][schedule]") {
  const auto ends_at = [](double bubble, const std::string& last, const std::string& next) {
    const std::string svg = plot_svg({plotted("x", bubble)});
    CAPTURE(bubble);
    CHECK_THAT(svg, ContainsSubstring(">" + last + "%</text>"));
    CHECK_THAT(svg, !ContainsSubstring(">" + next + "%</text>"));
  };
  ends_at(0, "5", "10");
  ends_at(0.05, "5", "10");
  ends_at(0.12, "15", "20");
  ends_at(0.3, "30", "35");
  ends_at(0.31, "40", "35");  // steps of 10 % from here on
  ends_at(1, "100", "110");
}

TEST_CASE("curves that coincide take turns along their line, and their marks stand side by side",
          "[tools][schedule]") {
  const std::string svg = plot_svg({plotted("a"), plotted("b"), plotted("c", 0.1), plotted("d")});
  const auto line = [](const char* color, const char* dashes) {
    return std::string("<polyline stroke='") + color + "' stroke-width='2' stroke-dasharray='" +
           dashes;
  };
  CHECK_THAT(svg, ContainsSubstring(line("#0072b2", "8 16' stroke-dashoffset='24'")));
  CHECK_THAT(svg, ContainsSubstring(line("#d55e00", "8 16' stroke-dashoffset='16'")));
  CHECK_THAT(svg, ContainsSubstring(line("#009e73", "none'")));
  CHECK_THAT(svg, ContainsSubstring(line("#cc79a7", "8 16' stroke-dashoffset='8'")));
  for (const char* place : {"309.0 186.0", "316.0 186.0", "323.0 186.0"}) {
    CHECK_THAT(svg, ContainsSubstring(std::string("translate(") + place + ")"));
  }
}

TEST_CASE("curves of one color differ in dashes and marks, and all are in the legend",
          "[tools][schedule]") {
  std::vector<PlotLine> lines;
  for (int i = 0; i < 30; ++i) {
    lines.push_back(plotted("line " + std::to_string(i), 0.01 * i));
  }
  const std::string svg = plot_svg(lines);
  CHECK_THAT(svg, ContainsSubstring("stroke='#0072b2' stroke-width='2' stroke-dasharray='none'"));
  CHECK_THAT(svg, ContainsSubstring("stroke='#0072b2' stroke-width='2' stroke-dasharray='7 3'"));
  CHECK_THAT(svg, ContainsSubstring("y='570'>line 29</text>") && ContainsSubstring("height='594'"));
  std::set<std::string> keys;
  const std::regex key("class='key' (stroke='[^']*').*?d='([^']*)'");
  for (std::sregex_iterator at(svg.begin(), svg.end(), key), end; at != end; ++at) {
    keys.insert((*at)[1].str() + (*at)[2].str());
  }
  CHECK(keys.size() == 30);
}

TEST_CASE("a plot has room for the longest name", "[tools][schedule]") {
  const std::string name(60, 'M');
  const std::string svg = plot_svg({plotted(name)});
  const std::size_t at = svg.find(" width='") + 8;
  CHECK(std::stod(svg.substr(at)) > 630 + 60 * 7);
}

TEST_CASE("the name of a schedule is text in its plot", "[tools][schedule]") {
  CHECK_THAT(plot_svg({plotted("a<b>&'c'")}),
             ContainsSubstring("a&lt;b&gt;&amp;") && !ContainsSubstring("a<b"));
}

}  // namespace
}  // namespace stagecraft::tools
