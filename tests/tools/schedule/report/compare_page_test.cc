#include "stagecraft/tools/schedule/report/compare_page.h"

#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

Candidate with_makespan(const std::string& name, double makespan) {
  return {
      .name = name, .figures = ScheduleFigures{.stages = 4, .makespan = makespan}, .reason = {}};
}

/// Returns a cell of the table with its bar.
std::string cell(const std::string& figure, const std::string& share) {
  return "<td>" + figure + "<span class=\"bar\" style=\"width:" + share + "%\"></span></td>";
}

TEST_CASE("a bar is the figure's share of the largest in its column", "[tools][schedule]") {
  const std::string page =
      compare_page("t", {with_makespan("long", 33), with_makespan("short", 8.25)}, false);
  CHECK_THAT(page,
             ContainsSubstring("<tr><td>long</td>" + cell("4", "100.0") + cell("33", "100.0")));
  CHECK_THAT(page,
             ContainsSubstring("<tr><td>short</td>" + cell("4", "100.0") + cell("8.25", "25.0")));
  // No schedule has a bubble, so no bar of the column is the largest.
  CHECK_THAT(page, ContainsSubstring(cell("0.0%", "0.0")) && !ContainsSubstring("nan"));
}

TEST_CASE("bytes are a column of the page if the costs know them", "[tools][schedule]") {
  Candidate held = with_makespan("held", 1);
  held.figures->peak_bytes = 2048;
  CHECK_THAT(
      compare_page("t", {held}, true),
      ContainsSubstring("<th>peak bytes</th>") && ContainsSubstring(cell("2.0 KiB", "100.0")));
  CHECK_THAT(compare_page("t", {held}, false), !ContainsSubstring("peak bytes"));
}

TEST_CASE("schedules without figures are listed below with their reasons", "[tools][schedule]") {
  const Candidate odd{.name = "a<b", .figures = std::nullopt, .reason = "P & M are odd"};
  const std::string page = compare_page("<t>", {odd, with_makespan("even", 1)}, false);
  CHECK_THAT(page,
             ContainsSubstring("<h2>Not compared</h2>\n<ul>\n<li>a&lt;b: P &amp; M are odd</li>"));
  CHECK_THAT(page, ContainsSubstring("<h1>&lt;t&gt;</h1>") && !ContainsSubstring("<td>a&lt;b"));
  CHECK_THAT(compare_page("t", {with_makespan("even", 1)}, false),
             !ContainsSubstring("Not compared"));
}

}  // namespace
}  // namespace stagecraft::tools
