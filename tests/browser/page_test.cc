/// Tests the page of render_html() in a real browser: its contents, and its reaction to mouse, keys
/// and address. Each test leaves its pictures in the build folder's screenshots/ for people to look
/// at.
#include "stagecraft/tests/browser/page.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kDeadlock = "@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1";
constexpr const char* kLateGradient = "0F0 0F1 0B0 . . 0B1\n. 1F0 1B0 1F1 1B1 .";

Schedule built(const char* name, int devices, int microbatches, std::optional<int> chunks = {}) {
  BuildRequest request;
  request.devices = devices;
  request.microbatches = microbatches;
  request.chunks = chunks;
  return build_schedule(name, request);
}

/// Returns cells that no parser makes but a program can.
Schedule nonsense() {
  const Task unknown{static_cast<CellKind>(255), StageId(-1), Microbatch(-3)};
  const Task idle{CellKind::Idle, StageId(0), Microbatch(0)};
  return Schedule(Schedule::Form::Array,
                  {{Cell(unknown), Cell(std::vector<Task>{unknown}), Cell(std::vector<Task>{})},
                   {Cell(idle), cells::U(0), cells::overlap(cells::F(0, 0), cells::F(0, 0))}});
}

std::optional<Timeline> simulated(const Schedule& schedule, const StageGraph& graph) {
  try {
    return simulate(schedule, graph);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string html_of(const Schedule& schedule, const StageGraph& graph, const char* title = "Test") {
  const auto timeline = simulated(schedule, graph);
  return render_html(
      schedule, graph, timeline ? &*timeline : nullptr, validate(schedule, graph), title);
}

/// Holds a browser and a folder for its pages.
class Pages {
 public:
  Page open(const Schedule& schedule,
            const std::string& fragment = "",
            const PageOptions& options = {}) {
    return open_html(html_of(schedule, schedule.stage_graph()), fragment, options);
  }
  Page open_html(const std::string& html,
                 const std::string& fragment = "",
                 const PageOptions& options = {}) {
    const std::string name = "page" + std::to_string(++opened_) + ".html";
    return Page(browser_, folder_.write(name, html) + fragment, options);
  }

 private:
  Chromium browser_;
  TemporaryFolder folder_;
  int opened_ = 0;
};

std::vector<std::string> names_in(Page& page, const std::string& selector) {
  return page.evaluate("[...document.querySelectorAll('" + selector +
                       "')].map(e => e.innerText.trim())");
}

struct Shown {
  std::string name;
  Schedule schedule;
  std::string fragment;
  PageOptions options;
};

TEST_CASE("every kind of schedule is painted without a complaint", "[browser]") {
  Pages pages;
  const std::vector<Shown> all{
      {"1f1b", built("1f1b", 4, 8), "", {}},
      {"1f1b-selected", built("1f1b", 4, 8), "#select=0B3", {}},
      {"1f1b-columns", built("1f1b", 4, 8), "#view=columns", {}},
      {"1f1b-narrow", built("1f1b", 4, 8), "", {.width = 420, .height = 900}},
      {"zb-v", built("zb-v", 8, 16), "", {}},
      {"dualpipe", built("dualpipe", 8, 20), "#select=3F4", {}},
      {"interleaved-dark", built("interleaved", 4, 8, 2), "#select=1B7", {.dark = true}},
      {"deadlock", Schedule::parse(kDeadlock), "", {}},
      {"deadlock-dark", Schedule::parse(kDeadlock), "", {.dark = true}},
      {"late-gradient", Schedule::parse(kLateGradient), "", {}},
      {"64x1000", built("1f1b", 64, 1000), "", {.width = 1600, .height = 1000}},
      {"one-cell", Schedule::parse("0F0"), "", {}},
      {"nonsense", nonsense(), "#select=0F0", {}},
      {"empty", Schedule(Schedule::Form::Array, {}), "", {}},
  };
  for (const Shown& shown : all) {
    CAPTURE(shown.name);
    Page page = pages.open(shown.schedule, shown.fragment, shown.options);
    const Screenshot shot = page.screenshot();
    save(shot, shown.name);
    CHECK(page.complaints() == std::vector<std::string>());
    CHECK(shot.png.substr(1, 3) == "PNG");
    CHECK(shot.width == shown.options.width);
    CHECK(shot.height == shown.options.height);
    CHECK(shot.colors > 20);
    CHECK(page.requests().size() == 1);
    CHECK(page.evaluate("document.documentElement.scrollWidth") == shown.options.width);
  }
}

TEST_CASE("the summary says what is shown", "[browser]") {
  Pages pages;
  Page page = pages.open(built("1f1b", 4, 8));
  CHECK_THAT(page.text("#facts"),
             ContainsSubstring("4 devices") && ContainsSubstring("4 stages") &&
                 ContainsSubstring("8 microbatches") && ContainsSubstring("33 makespan") &&
                 ContainsSubstring("e668f443e2c0cd9d") && ContainsSubstring("valid"));
  CHECK_THAT(
      page.text("#bill"),
      ContainsSubstring("warm-up") && ContainsSubstring("4.5%") && ContainsSubstring("13.6%"));
}

TEST_CASE("hovering says what a task waited for, and why a row is idle", "[browser]") {
  Pages pages;
  Page page = pages.open(built("1f1b", 4, 8));
  page.move_to(page.locate("0B0"));
  CHECK_THAT(page.text("#tooltip"),
             ContainsSubstring("0B0") && ContainsSubstring("device 0") &&
                 ContainsSubstring("10 to 12, lasts 2") &&
                 ContainsSubstring("waited 6 for 1B0 (dependency)"));
  page.move_to(page.locate("2F0"));
  CHECK_THAT(page.text("#tooltip"), ContainsSubstring("waited 2 for 1F0 (warm-up)"));
  page.move_to(page.locate("0F2"));
  CHECK_THAT(page.text("#tooltip"), ContainsSubstring("did not wait"));

  const Point before = page.locate("0F3");
  const Point after = page.locate("0B0");
  page.move_to({(before.x + after.x) / 2, before.y});
  CHECK_THAT(page.text("#tooltip"),
             ContainsSubstring("device 0 idle") && ContainsSubstring("4 to 10"));
  page.move_to(page.middle_of("#memory"));
  CHECK_THAT(page.text("#tooltip"), ContainsSubstring("holds"));
  page.move_to({2, 2});
  CHECK(page.evaluate("document.getElementById('tooltip').hidden") == true);
}

TEST_CASE("a task that does nothing says so, and what waits for it does not wait", "[browser]") {
  const Schedule schedule = built("zb-h1", 3, 4);
  StageGraph graph = schedule.stage_graph();
  graph.freeze({0});
  Pages pages;
  Page page = pages.open_html(html_of(schedule, graph), "#view=columns");
  page.move_to(page.locate("0I0"));
  CHECK_THAT(page.text("#tooltip"), ContainsSubstring("stage 0, does nothing"));
  CHECK_THAT(
      page.text("#legend"),
      ContainsSubstring("12 tasks do nothing") && ContainsSubstring("stage 0 (no backward)"));
  // Stage 1 sends no gradient, and its W waits for the value that its I would have waited for.
  page.click(page.locate("1W0"));
  CHECK_THAT(page.text("#selection"), ContainsSubstring("2I0"));
  page.click(page.locate("1I0"));
  CHECK_THAT(page.text("#selection"), !ContainsSubstring("2I0"));
  CHECK_THAT(std::string(page.evaluate("document.getElementById('memory').ariaLabel")),
             ContainsSubstring("device 0 peak 0"));
  graph.freeze({0, 1, 2});
  Page idle = pages.open_html(html_of(schedule, graph), "#view=columns");
  CHECK_THAT(idle.text("#legend"), !ContainsSubstring("W weight gradient"));
  save(page.screenshot(), "frozen");
  CHECK(page.complaints() == std::vector<std::string>());
}

TEST_CASE("transfers are told apart from dependencies", "[browser]") {
  const Schedule schedule = built("1f1b", 2, 2);
  const StageGraph graph = schedule.stage_graph();
  Costs costs;
  costs.links.usual.latency = 0.5;
  const Timeline timeline = simulate(schedule, graph, costs);
  Pages pages;
  Page page = pages.open_html(render_html(schedule, graph, &timeline));
  page.move_to(page.locate("1F0"));
  CHECK_THAT(page.text("#tooltip"),
             ContainsSubstring("waited 1.5 for 0F0 (warm-up, 0.5 of it in transfer)"));
}

TEST_CASE("held bytes are shown where they are known, else activations", "[browser]") {
  const Schedule schedule = built("1f1b", 2, 4);
  const StageGraph graph = schedule.stage_graph();
  const MemoryModel memory{.fixed = {3e9, 2e9}, .activations = {5e8, 25e7}};
  const Timeline timeline = simulate(schedule, graph, {.stages = {.memory = memory}});
  Pages pages;
  Page bytes = pages.open_html(render_html(schedule, graph, &timeline));
  CHECK(bytes.text("#memory-title") == "Memory held");
  CHECK_THAT(std::string(bytes.evaluate("document.getElementById('memory').ariaLabel")),
             ContainsSubstring("device 0 3.7 GiB, 2 held") &&
                 ContainsSubstring("device 1 2.1 GiB, 1 held"));
  const Point middle = bytes.middle_of("#memory");
  bytes.move_to({middle.x, middle.y - 15});
  CHECK_THAT(
      bytes.text("#tooltip"),
      ContainsSubstring("holds 3.7 GiB, 2 activations") && ContainsSubstring("at most 3.7 GiB, 2"));
  save(bytes.screenshot(), "bytes");
  CHECK(bytes.complaints() == std::vector<std::string>());

  Page counts = pages.open(schedule);
  CHECK(counts.text("#memory-title") == "Held activations");
  counts.move_to({middle.x, middle.y - 15});
  CHECK_THAT(counts.text("#tooltip"), ContainsSubstring("holds 2 activations"));
}

TEST_CASE("a clicked task shows the simulator's critical path to it", "[browser]") {
  Pages pages;
  for (const Schedule& schedule : {built("1f1b", 4, 8),
                                   built("zb-h1", 4, 8),
                                   built("interleaved", 4, 8, 2),
                                   built("gpipe", 3, 5)}) {
    const Timeline timeline = simulate(schedule, schedule.stage_graph());
    std::vector<std::string> expected;
    for (const Task& task : timeline.critical_path) {
      expected.insert(expected.begin(), to_string(task));
    }
    Page page = pages.open(schedule);
    page.click(page.locate(expected.front()));
    CHECK(page.text("#selection h2") == expected.front());
    CHECK(names_in(page, "#chain .task") == expected);
    CHECK(page.evaluate("location.hash") == "#select=" + expected.front());
  }
}

TEST_CASE("the panel lists what a task needs and what needs it", "[browser]") {
  Pages pages;
  Page split = pages.open(built("zb-h1", 4, 8), "#select=1I2");
  CHECK(names_in(split, "#selection h3.next + ul .task") == std::vector<std::string>{"0I2", "1W2"});
  CHECK(names_in(split, "#selection dl + h3 + ul .task") == std::vector<std::string>{"1F2", "2I2"});

  BuildRequest request;
  request.devices = 3;
  request.microbatches = 4;
  request.graph = StageGraph::from_edges(3, {{0, 2}, {1, 2}});
  Page joined = pages.open(build_schedule("dag-1f1b", request), "#select=2F1");
  CHECK(names_in(joined, "#selection dl + h3 + ul .task") ==
        std::vector<std::string>{"0F1", "1F1"});
}

TEST_CASE("both tasks of a group are described", "[browser]") {
  Pages pages;
  Page page = pages.open(built("dualpipe", 4, 8), "#select=0F3");
  const std::string name = page.text("#selection h2");
  REQUIRE_THAT(name, ContainsSubstring("0F3|"));
  CHECK_THAT(page.text("#selection"),
             ContainsSubstring("Forward of microbatch 3, stage 0") &&
                 ContainsSubstring("Backward of microbatch"));
  page.move_to(page.locate("0F3"));
  CHECK_THAT(page.text("#tooltip"), ContainsSubstring(name));
}

TEST_CASE("wheel, drag, buttons and keys zoom and pan", "[browser]") {
  Pages pages;
  Page page = pages.open(built("1f1b", 4, 8));
  const auto distance = [&] { return page.locate("0B7").x - page.locate("0F0").x; };
  const double whole = distance();
  const Point at = page.locate("0B3");
  page.wheel(at, -400);
  CHECK(distance() > 1.5 * whole);
  CHECK(page.locate("0B3").x == Catch::Approx(at.x).margin(1));  // the task stays in place

  page.drag(at, {at.x - 100, at.y});
  CHECK(page.locate("0B3").x == Catch::Approx(at.x - 100).margin(1));
  CHECK(page.text("#selection h2").empty());  // a drag is not a click

  page.click(page.middle_of("#fit"));
  CHECK(distance() == Catch::Approx(whole));
  page.click(page.middle_of("#zoom-in"));
  CHECK(distance() == Catch::Approx(1.5 * whole));
  page.press("-");
  CHECK(distance() == Catch::Approx(whole));
  page.press("+");
  page.press("0");
  CHECK(distance() == Catch::Approx(whole));
}

TEST_CASE("keys go from task to task and between views", "[browser]") {
  Pages pages;
  Page page = pages.open(built("1f1b", 4, 8), "#select=0F1");
  (void)page.evaluate("document.getElementById('grid').focus()");
  page.press("ArrowRight");
  CHECK(page.text("#selection h2") == "0F2");
  page.press("ArrowDown");
  CHECK(page.text("#selection h2") == "1F1");
  page.press("ArrowLeft");
  CHECK(page.text("#selection h2") == "1F0");
  CHECK_THAT(page.text("#status"), ContainsSubstring("Forward of microbatch 0, stage 1"));
  page.press("t");
  CHECK(page.evaluate("document.getElementById('view-columns').ariaPressed") == "true");
  CHECK(page.evaluate("location.hash") == "#select=1F0&view=columns");
  page.press("Escape");
  CHECK(page.count("#selection h2") == 0);
  page.press("?");
  CHECK(page.evaluate("document.getElementById('keys').open") == true);
}

TEST_CASE("a task is found by its name", "[browser]") {
  Pages pages;
  Page page = pages.open(built("1f1b", 8, 400));
  page.press("/");
  for (const char* key : {"5", "b", "3", "0", "0"}) {
    page.press(key);
  }
  page.press("Enter");
  CHECK(page.text("#selection h2") == "5B300");
  const double x = page.locate("5B300").x;
  CHECK(x > 0);
  CHECK(x < 900);
  CHECK_THAT(std::string(page.text("#chain")), ContainsSubstring("before"));
}

/// Returns the computed colors of the swatches, and the most frequent colors of the grid's canvas
/// where their tasks are.
nlohmann::json legend_colors(Page& page) {
  return page.evaluate(
      "(() => { const canvas = document.getElementById('grid');"
      "const context = canvas.getContext('2d'); const corner = canvas.getBoundingClientRect();"
      "const ratio = canvas.width / corner.width;"
      "const drawn = (task) => { const at = locateTask(task); const seen = new Map();"
      "const p = context.getImageData(Math.round((at.x - corner.x) * ratio) - 3,"
      "  Math.round((at.y - corner.y) * ratio) - 10, 6, 20).data;"
      "for (let i = 0; i < p.length; i += 4) {"
      "  const rgb = `rgb(${p[i]}, ${p[i + 1]}, ${p[i + 2]})`;"
      "  seen.set(rgb, (seen.get(rgb) || 0) + 1); }"
      "return [...seen].reduce((a, b) => (b[1] > a[1] ? b : a))[0]; };"
      "return [...document.querySelectorAll('#legend [data-example]')].map((swatch) =>"
      "  [getComputedStyle(swatch).backgroundColor, drawn(swatch.dataset.example)]); })()");
}

TEST_CASE("the legend's swatches have the colors that are drawn, whatever colors say",
          "[browser]") {
  Pages pages;
  for (const bool dark : {false, true}) {
    for (const char* by : {"stage", "kind", "chunk", "microbatch"}) {
      CAPTURE(dark, by);
      Page page = pages.open(built("interleaved", 8, 16, 2),
                             std::string("#color=") + by,
                             {.width = 2400, .height = 900, .dark = dark});
      save(page.screenshot(), std::string("by-") + by + (dark ? "-dark" : ""));
      CHECK(page.complaints() == std::vector<std::string>());
      const auto colors = legend_colors(page);
      REQUIRE(colors.size() >= 2);
      std::set<std::string> swatches;
      for (const auto& pair : colors) {
        CHECK(pair[0] == pair[1]);
        swatches.insert(pair[0]);
      }
      CHECK(swatches.size() >= colors.size() - 1);  // the first shade appears twice
    }
  }
}

TEST_CASE("both chunks of a device differ, be there ever so many stages", "[browser]") {
  Pages pages;
  Page page = pages.open(built("interleaved", 16, 16, 2));
  CHECK_THAT(page.text("#legend"), ContainsSubstring("stages 0 to 31"));
  const auto swatches = page.evaluate(
      "[...document.querySelectorAll('#legend .samples .swatch')].map((swatch) =>"
      "getComputedStyle(swatch).backgroundColor)");
  REQUIRE(swatches.size() == 32);
  CHECK(std::set<std::string>(swatches.begin(), swatches.end()).size() == 32);
}

TEST_CASE("what colors say is switched by list, key and address", "[browser]") {
  Pages pages;
  Page page = pages.open(built("zb-v", 4, 8));
  CHECK_THAT(page.text("#legend"), ContainsSubstring("stage 7"));
  (void)page.evaluate(
      "(() => { const list = document.getElementById('color-by'); list.value = 'kind';"
      "list.dispatchEvent(new Event('change')); })()");
  CHECK(page.evaluate("location.hash") == "#color=kind");
  CHECK_THAT(page.text("#legend"),
             !ContainsSubstring("stage") && ContainsSubstring("W weight gradient"));
  (void)page.evaluate("document.getElementById('grid').focus()");
  page.press("c");
  CHECK(page.evaluate("document.getElementById('color-by').value") == "chunk");
  CHECK_THAT(page.text("#legend"), ContainsSubstring("chunk 1") && !ContainsSubstring("chunk 2"));
  CHECK(page.evaluate("location.hash") == "#color=chunk");
  page.press("c");
  page.press("c");
  CHECK(page.evaluate("location.hash") == "");
}

TEST_CASE("a page says what it leaves out of narrow cells", "[browser]") {
  Pages pages;
  Page wide = pages.open(built("1f1b", 2, 2));
  CHECK(wide.text("#narrow").empty());
  Page page = pages.open(built("1f1b", 4, 60));
  CHECK_THAT(page.text("#narrow"), ContainsSubstring("bear no name"));
  for (int i = 0; i < 12; ++i) {
    page.press("+");
  }
  CHECK(page.text("#narrow").empty());
  Page crowded = pages.open(built("1f1b", 4, 2000));
  CHECK_THAT(crowded.text("#narrow"), ContainsSubstring("mean colors"));
}

TEST_CASE("a search that finds nothing says so", "[browser]") {
  Pages pages;
  Page page = pages.open(built("1f1b", 4, 8));
  const auto search = [&](const std::vector<const char*>& keys) {
    page.press("/");
    (void)page.evaluate("document.getElementById('find-task').select()");
    for (const char* key : keys) {
      page.press(key);
    }
    page.press("Enter");
    return page.text("#find-miss");
  };
  CHECK(search({"9", "f", "9"}) == "no task 9F9 in this schedule");
  CHECK(page.count("#selection h2") == 0);
  CHECK(search({"x"}) == "write a task, e.g. 1F3");
  save(page.screenshot(), "search-miss");
  CHECK(search({"1", "f", "3"}).empty());
  CHECK(page.text("#selection h2") == "1F3");
}

TEST_CASE("a deadlock is shown in positions, with its cycle in red", "[browser]") {
  Pages pages;
  Page page = pages.open(Schedule::parse(kDeadlock));
  CHECK(page.evaluate("document.getElementById('view-time').disabled") == true);
  CHECK_THAT(page.text("#violations"),
             ContainsSubstring("V29") && ContainsSubstring("exchange 0B0 and 0F1 of row 0"));
  CHECK(page.count(".violation[aria-pressed=true]") == 1);
  const char* red =
      "(() => { const c = document.getElementById('grid');"
      "const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
      "for (let i = 0; i < p.length; i += 4) n += p[i] > 190 && p[i + 1] < 40 && p[i + 2] < 60;"
      "return n; })()";
  const int drawn = page.evaluate(red);
  page.press("Escape");  // the marks stay, the cycle is gone
  const int marks = page.evaluate(red);
  CHECK(marks > 1000);
  CHECK(drawn > marks + 500);
}

TEST_CASE("a clicked violation is brought into view", "[browser]") {
  Schedule good = built("1f1b", 4, 400);
  auto rows = good.rows();
  std::swap(rows[2][700], rows[2][701]);
  const Schedule bad(Schedule::Form::Array, rows);
  Pages pages;
  Page page = pages.open(bad, "#view=columns");
  REQUIRE(page.count(".violation") > 0);
  for (int i = 0; i < 12; ++i) {
    page.press("+");
  }
  page.press("a");
  page.click(page.middle_of(".violation"));
  const auto cell = to_string(rows[2][700].idle() ? rows[2][701] : rows[2][700]);
  const double x = page.locate(cell).x;
  CHECK(x > 0);
  CHECK(x < 900);
  CHECK(page.count(".violation[aria-pressed=true]") == 1);
}

TEST_CASE("more violations than a page lists are counted", "[browser]") {
  std::string row;
  for (int stage = 0; stage < 1500; ++stage) {
    row += std::to_string(stage) + "F0 ";
  }
  Pages pages;
  // Every stage runs on two rows.
  Page page = pages.open(Schedule::parse("@form list\n" + row + "\n" + row));
  CHECK(page.count(".violation") == kMaxHtmlViolations);
  CHECK_THAT(page.text("#violations li.note"), ContainsSubstring("more"));
}

TEST_CASE("the scheme follows the system until one is chosen", "[browser]") {
  Pages pages;
  const auto scheme = [](Page& page) -> std::string {
    return page.evaluate("document.documentElement.dataset.theme");
  };
  Page dark = pages.open(built("1f1b", 2, 2), "", {.dark = true});
  CHECK(scheme(dark) == "dark");
  dark.click(dark.middle_of("#theme"));
  CHECK(scheme(dark) == "light");
  CHECK(dark.evaluate("location.hash") == "#theme=light");
  Page linked = pages.open(built("1f1b", 2, 2), "#theme=dark");
  CHECK(scheme(linked) == "dark");
}

TEST_CASE("names and titles are text, whatever they hold", "[browser]") {
  const std::string evil = "</script><script>document.title='broken'</script><!--\" & \xE2\x80\xA8";
  const Schedule schedule = built("1f1b", 2, 2);
  StageGraph graph = schedule.stage_graph();
  graph.set_name(StageId(1), evil);
  Pages pages;
  Page page = pages.open_html(html_of(schedule, graph, evil.c_str()), "#select=1F1");
  CHECK(page.complaints() == std::vector<std::string>());
  CHECK(page.count("script") == 2);
  CHECK(page.evaluate("document.getElementById('title').textContent") == evil);
  CHECK_THAT(std::string(page.evaluate("document.getElementById('selection').textContent")),
             ContainsSubstring(evil));
}

TEST_CASE("a page near the largest size opens and moves", "[browser]") {
  Pages pages;
  Page page = pages.open(built("1f1b", 64, 7800));  // 998,400 entries
  CHECK(page.complaints() == std::vector<std::string>());
  page.wheel(page.locate("30F4000"), -2000);
  (void)page.evaluate("location.hash = '#select=63B7799'");
  CHECK(page.text("#selection h2") == "63B7799");
  CHECK(page.screenshot().colors > 20);
  CHECK(page.complaints() == std::vector<std::string>());
}

}  // namespace
}  // namespace stagecraft::tests
