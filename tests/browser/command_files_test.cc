/// Tests files that commands write in a real browser: `stagecraft schedule compare --html`, `sweep
/// --svg` and `show --svg`, and `stagecraft trace show --svg`.
#include <algorithm>
#include <string>
#include <vector>

#include "stagecraft/tests/browser/page.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

/// Opens the file that a command writes.
class Written {
 public:
  /// `words` is a command whose last option takes the file's name.
  Page open(const std::string& words, const std::string& name, const PageOptions& options = {}) {
    const CommandResult result = run_schedule_line(words + ' ' + path_of(name));
    CAPTURE(words, result.err);
    REQUIRE(result.exit_code == 0);
    return open_file(name, options);
  }

  /// Opens a file that was written into the folder.
  Page open_file(const std::string& name, const PageOptions& options) {
    return Page(browser_, path_of(name), options);
  }

  [[nodiscard]] std::string path_of(const std::string& name) const {
    return folder_.path() + '/' + name;
  }

  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }

 private:
  Chromium browser_;
  TemporaryFolder folder_;
};

/// Returns the texts of all elements that match.
std::vector<std::string> texts(Page& page, const std::string& selector) {
  return page
      .evaluate("Array.from(document.querySelectorAll(" + Json(selector).dump() +
                "), e => e.textContent)")
      .get<std::vector<std::string>>();
}

TEST_CASE("the page of compare has a row for each schedule, light and dark", "[browser]") {
  struct Look {
    const char* name;
    PageOptions options;
  };
  const Look looks[] = {{"compare", {.width = 1280, .height = 800}},
                        {"compare-dark", {.width = 1280, .height = 800, .dark = true}}};
  Written written;
  const std::string own =
      written.file("own<b>.txt", run_schedule_line("make gpipe --devices 3 --microbatches 6").out);
  for (const Look& look : looks) {
    CAPTURE(look.name);
    Page page = written.open(
        "compare 1f1b interleaved chimera " + own + " --devices 3 --microbatches 6 --html",
        "compare.html",
        look.options);
    const Screenshot shot = page.screenshot();
    save(shot, look.name);
    CHECK(page.complaints() == std::vector<std::string>());
    CHECK(page.requests().size() == 1);
    CHECK(shot.colors > 5);
    const std::vector<std::string> names = texts(page, "tbody td:first-child");
    REQUIRE(names.size() == 3);
    CHECK(names[0] == "1f1b");
    CHECK_THAT(names[2], ContainsSubstring("own<b>.txt"));
    CHECK_THAT(page.text("ul"), ContainsSubstring("chimera: "));
    CHECK(page.evaluate("document.documentElement.scrollWidth") == look.options.width);
  }
}

TEST_CASE("a bar of compare's page is as long as its figure says", "[browser]") {
  Written written;
  Page page = written.open("compare gpipe 1f1b --devices 4 --microbatches 8 --html", "c.html");
  // Reads the column of microbatches in flight: gpipe has 8, 1f1b 4.
  const Json bars = page.evaluate(
      "(() => {"
      " const column = Array.from(document.querySelectorAll('th'))"
      "   .findIndex(th => th.textContent === 'in flight');"
      " return Array.from(document.querySelectorAll('tbody tr'), row => {"
      "   const cell = row.children[column];"
      "   return {figure: Number(cell.textContent),"
      "     bar: cell.querySelector('.bar').getBoundingClientRect().width}; }); })()");
  REQUIRE(bars.size() == 2);
  CHECK(bars[0]["figure"] == 8);
  CHECK(bars[1]["figure"] == 4);
  const double longest = bars[0]["bar"];
  CHECK(longest > 20);
  CHECK(bars[1]["bar"].get<double>() == Catch::Approx(longest / 2).margin(1));
}

TEST_CASE("the plot of a sweep has a curve for each schedule, and its legend is what is drawn",
          "[browser]") {
  Written written;
  Page page = written.open(
      "sweep gpipe 1f1b interleaved zb-h1 --devices 2,4 --microbatches 4,8,16 --chunks 2,3 --svg",
      "plot.svg",
      {.width = 900, .height = 500});
  const Screenshot shot = page.screenshot();
  save(shot, "sweep");
  CHECK(page.complaints() == std::vector<std::string>());
  CHECK(page.requests().size() == 1);
  CHECK(shot.colors > 7);
  const std::size_t curves = page.count("polyline");
  CHECK(curves == 10);  // gpipe, 1f1b and zb-h1 have two each, interleaved has four
  CHECK(page.count(".mark title") == 3 * curves);
  // A key has the color and the mark of its curve, and the words beside it belong to the curve's
  // points.
  const Json keys = page.evaluate(
      "Array.from(document.querySelectorAll('.key'), key => {"
      " const mark = key.nextElementSibling, name = mark.nextElementSibling;"
      " let curve = key; while (curve.tagName !== 'polyline') curve = curve.previousElementSibling;"
      " const point = curve.nextElementSibling;"
      " const look = (line, at) => [getComputedStyle(line).stroke, at.getAttribute('d')];"
      " const box = name.getBoundingClientRect();"
      " return {name: name.textContent,"
      "   same: String(look(key, mark)) === String(look(curve, point)),"
      "   look: String(look(curve, point)), right: box.right, bottom: box.bottom,"
      "   point: point.textContent}; })");
  REQUIRE(keys.size() == curves);
  std::vector<std::string> looks;
  const Json picture = page.evaluate(
      "(box => ({right: box.right, bottom: box.bottom}))"
      "(document.documentElement.getBoundingClientRect())");
  for (const Json& key : keys) {
    CAPTURE(key.dump());
    CHECK(key["same"] == true);
    CHECK(key["point"].get<std::string>().starts_with(key["name"].get<std::string>() + ": "));
    CHECK(key["right"] <= picture["right"]);
    CHECK(key["bottom"] <= picture["bottom"]);
    looks.push_back(key["look"]);
  }
  // gpipe and 1f1b coincide, so their dashes alternate.
  const Json offsets = page.evaluate(
      "Array.from(document.querySelectorAll('polyline'), e =>"
      " getComputedStyle(e).strokeDashoffset)");
  CHECK(offsets[0] != offsets[2]);
  std::ranges::sort(looks);
  CHECK(std::ranges::adjacent_find(looks) == looks.end());
}

/// Checks a picture of schedules one above the other: their names, one axis with the name of its
/// unit and the same grid for all, and every text where it belongs.
void check_panels(Page& page, const std::vector<std::string>& names, const std::string& unit) {
  CHECK(page.complaints() == std::vector<std::string>());
  CHECK(page.requests().size() == 1);
  CHECK(texts(page, ".panel") == names);
  CHECK(std::ranges::count(texts(page, ".label"), unit) == 1);
  const std::vector<std::string> marks = texts(page, ".axis");
  REQUIRE(marks.size() > 2);
  CHECK(marks.front() == "0");
  const auto lefts = [&](const std::string& selector) {
    return page
        .evaluate("Array.from(document.querySelectorAll(" + Json(selector).dump() +
                  "), e => e.getBoundingClientRect().left)")
        .get<std::vector<double>>();
  };
  const std::vector<double> grid = lefts(".tick");
  REQUIRE(grid.size() == names.size() * marks.size());
  for (std::size_t i = marks.size(); i < grid.size(); ++i) {
    CHECK(grid[i] == grid[i % marks.size()]);
  }
  for (const double row : lefts(".row")) {
    CHECK(row == grid.front());
  }
  const Json outside = page.evaluate(
      "(() => {"
      " const box = e => e.getBoundingClientRect();"
      " const picture = box(document.documentElement);"
      " const all = Array.from(document.querySelectorAll('text'));"
      " const leaves = (t, b) => t.left < b.left - 0.1 || t.right > b.right + 0.1;"
      " return all.filter(text => {"
      "   const t = box(text), entry = text.closest('.entry');"
      "   return leaves(t, picture) || t.top < picture.top || t.bottom > picture.bottom ||"
      "     (entry !== null && leaves(t, box(entry.querySelector('rect')))); })"
      "  .map(text => text.textContent); })()");
  CHECK(outside == Json::array());
}

TEST_CASE("a picture of two schedules has one axis, and its texts are inside it", "[browser]") {
  Written written;
  const auto made = [&](const std::string& builder) {
    return written.file(builder + ".txt",
                        run_schedule_line("make " + builder + " --devices 4 --microbatches 8").out);
  };
  Page page = written.open("show " + made("1f1b") + ' ' + made("zb-v") + " --color-by kind --svg",
                           "both.svg",
                           {.width = 1600, .height = 360});
  const Screenshot shot = page.screenshot();
  save(shot, "two-schedules");
  CHECK(shot.colors > 7);
  CHECK(page.count(".entry") == 4 * 8 * 2 + 4 * 2 * 8 * 3);
  CHECK(page.count(".entry text") == page.count(".entry"));
  check_panels(page, {"1f1b", "zb-v"}, "time");
}

TEST_CASE("a run below its plan has one axis, and its texts are inside it", "[browser]") {
  Written written;
  const auto run = [](std::vector<std::string> words) {
    words.insert(words.begin(), STAGECRAFT_COMMAND);
    const CommandResult result = run_command(words);
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
  };
  const std::string trace = written.path_of("trace.json");
  run({"train",
       "--schedule",
       "zb-v",
       "--ranks",
       "4",
       "--layers",
       "8",
       "--microbatches",
       "8",
       "--steps",
       "3",
       "--seq",
       "16",
       "--dim",
       "16",
       "--trace",
       trace});
  run({"trace", "show", trace, "--color-by", "kind", "--svg", written.path_of("trace.svg")});
  Page page = written.open_file("trace.svg", {.width = 1600, .height = 400});
  const Screenshot shot = page.screenshot();
  save(shot, "trace");
  CHECK(shot.colors > 7);
  CHECK(page.count(".entry") == 2 * 4 * 2 * 8 * 3);
  check_panels(page, {"planned", "measured, mean of 2 steps"}, "ms");
}

}  // namespace
}  // namespace stagecraft::tests
