/// Tests the page of render_plan_page() in a real browser.
#include "stagecraft/scheduler/render/html/plan_page.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/browser/page.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Holds a plan of two encoders, a fusion that also reads the input's stage, and a head.
class Plan {
 public:
  explicit Plan(const StageGraph& graph =
                    StageGraph::from_edges(5, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}, {3, 4}}))
      : graph_(graph), schedule_(one_f_one_b(graph, 8)) {
    Costs costs;
    for (int s = 0; s < graph.size(); ++s) {
      const double forward = 0.01 * (1 + s % 3);
      costs.stages.each.push_back({.forward = forward, .backward = 2 * forward});
      page_.stages.push_back(
          {s == 3 ? "fusion" : fmt::format("part {}", s), 4 + s, s, 1, forward, 2 * forward, 3e8});
      page_.ranks.push_back({1e9 + 2e8 * s, 8e8 - 1e8 * (s % 5), 1e8});
    }
    for (const auto& [from, to] : graph.edges()) {
      page_.edges.push_back({from, to, 1e6 * (1 + from)});
    }
    timeline_ = simulate(schedule_, graph_, costs);
    page_.title = "A test of plans";
    page_.facts = {{"step", "0.58 s"}, {"planner", "capslog"}};
    page_.why = {"device 2 computes 91 % of the step"};
    page_.budget = 2.4e9;
    page_.bound = 0.4;
    for (int i = 0; i < 24; ++i) {
      page_.candidates.push_back({fmt::format("candidate {} of pfeife loops=2", i),
                                  0.58 + 0.02 * i,
                                  2.1e9 - 1e8 * (i % 7) + 3e7 * i,
                                  i == 0});
    }
    page_.schedule = &schedule_;
    page_.graph = &graph_;
    page_.timeline = &timeline_;
  }

  Page open(const std::string& fragment = "", const PageOptions& options = {}) {
    return Page(browser_, folder_.write("plan.html", render_plan_page(page_)) + fragment, options);
  }

  PlanPage& page() { return page_; }

 private:
  StageGraph graph_;
  Schedule schedule_;
  Timeline timeline_;
  PlanPage page_;
  Chromium browser_;
  TemporaryFolder folder_;
};

/// Waits until the frame has drawn its schedule.
void wait_for_timeline(Page& page) {
  const auto ready = [&]() -> bool {
    return page.evaluate(
        "document.getElementById('timeline').contentDocument?.documentElement.dataset.ready === "
        "'yes'");
  };
  for (int i = 0; i < 200 && !ready(); ++i) {
  }
  CHECK(ready());
}

TEST_CASE("a plan is drawn without a complaint, light, dark and narrow", "[browser]") {
  struct Look {
    const char* name;
    PageOptions options;
  };
  const Look looks[] = {{"plan", {.width = 1280, .height = 1900}},
                        {"plan-dark", {.width = 1280, .height = 1900, .dark = true}},
                        {"plan-narrow", {.width = 420, .height = 1200}}};
  Plan plan;
  for (const Look& look : looks) {
    CAPTURE(look.name);
    Page page = plan.open("", look.options);
    wait_for_timeline(page);
    const Screenshot shot = page.screenshot();
    save(shot, look.name);
    CHECK(page.complaints() == std::vector<std::string>());
    CHECK(shot.colors > 20);
    CHECK(page.requests().size() == 1);
    CHECK(page.evaluate("document.documentElement.scrollWidth") == look.options.width);
    CHECK(page.count("#graph .stage") == 5);
    CHECK(page.count("#graph .edge") == 6);
    CHECK(page.count("#front .point") == 24);
    CHECK(page.count("#list tr") == 25);
  }
}

TEST_CASE("a page writes bytes as the terminal does, on its axes too", "[browser]") {
  Plan plan;
  plan.page().candidates[1].bytes = 1023;
  plan.page().candidates[2].bytes = 1048575;
  plan.page().candidates[3].bytes = 6990506.6666667;
  Page page = plan.open("", {.width = 1280, .height = 1900});
  const auto texts_in = [&](const char* element) -> std::string {
    return page.evaluate(fmt::format("document.getElementById('{}').textContent", element));
  };
  for (const char* drawing : {"front", "ranks"}) {
    CAPTURE(drawing);
    CHECK_THAT(texts_in(drawing), ContainsSubstring("0 B") && ContainsSubstring("1.0 GiB"));
  }
  CHECK_THAT(texts_in("front"), ContainsSubstring("memory of the fullest device"));
  const std::string list = texts_in("list");
  for (const auto& candidate : plan.page().candidates) {
    CHECK_THAT(list, ContainsSubstring(bytes_text(candidate.bytes)));
  }
}

TEST_CASE("the axes of time and memory have their units at every tick", "[browser]") {
  Plan plan;
  Page page = plan.open("", {.width = 1280, .height = 1900});
  const auto words =
      page.evaluate(
              "Array.from(document.querySelectorAll('#front text.dim'), text => text.textContent)")
          .get<std::vector<std::string>>();
  CHECK(std::ranges::count(words, "time of a step") == 1);
  CHECK(std::ranges::count(words, "memory of the fullest device") == 1);
  const std::regex duration("[0-9.]+ (s|ms|\u00b5s)"), bytes("[0-9.]+ ([KMGT]i)?B");
  int times = 0, sizes = 0;
  for (const std::string& text : words) {
    CAPTURE(text);
    const bool is_time = std::regex_match(text, duration), is_size = std::regex_match(text, bytes);
    CHECK((is_time || is_size) == (std::isdigit(static_cast<unsigned char>(text.front())) != 0));
    times += is_time ? 1 : 0;
    sizes += is_size ? 1 : 0;
  }
  CHECK(times >= 3);
  CHECK(sizes >= 3);
  CHECK(std::ranges::count(words, "0 s") == 1);
}

TEST_CASE("what is pointed at says what it is", "[browser]") {
  Plan plan;
  Page page = plan.open("", {.width = 1280, .height = 1900});
  CHECK_THAT(page.text("#facts"), ContainsSubstring("planner capslog"));
  CHECK_THAT(page.text("#why"), ContainsSubstring("91 %"));
  page.move_to(page.middle_of("#graph .stage"));
  CHECK_THAT(page.text("#tooltip"),
             ContainsSubstring("stage 0: part 0") && ContainsSubstring("4 operators on device 0") &&
                 ContainsSubstring("forward 10 ms, backward 20 ms"));
  page.move_to(page.middle_of("#ranks g"));
  CHECK_THAT(page.text("#tooltip"),
             ContainsSubstring("device 0: 1.8 GiB") && ContainsSubstring("476.8 MiB left"));
  page.move_to(page.middle_of("#front .point.chosen"));
  CHECK_THAT(page.text("#tooltip"),
             ContainsSubstring("candidate 0 of pfeife") && ContainsSubstring("580 ms a step"));
}

TEST_CASE("a candidate is picked in the drawing and in the list", "[browser]") {
  Plan plan;
  Page page = plan.open("", {.width = 1280, .height = 1900});
  CHECK_THAT(page.text("#picked"), ContainsSubstring("candidate 0"));
  page.click(page.middle_of("#front .point[data-candidate='6']"));
  CHECK_THAT(page.text("#picked"), ContainsSubstring("candidate 6 of"));
  CHECK_THAT(page.text("#list tr.picked"),
             ContainsSubstring("candidate 6") && ContainsSubstring("on the front"));
  page.click(page.middle_of("#list tr:nth-child(4) button"));
  CHECK_THAT(page.text("#picked"), ContainsSubstring("candidate 2 of"));
}

TEST_CASE("the timeline in a plan is the schedule's page, in the same colors", "[browser]") {
  Plan plan;
  Page page = plan.open("#theme=dark", {.width = 1280, .height = 1900});
  wait_for_timeline(page);
  const auto inside = [&](const std::string& what) -> std::string {
    return page.evaluate("document.getElementById('timeline').contentDocument." + what);
  };
  CHECK_THAT(inside("getElementById('facts').textContent"), ContainsSubstring("5 stages"));
  CHECK(inside("documentElement.dataset.theme") == "dark");
  page.click(page.middle_of("#theme"));
  CHECK(page.evaluate("document.documentElement.dataset.theme") == "light");
  CHECK(inside("documentElement.dataset.theme") == "light");
  CHECK(page.complaints() == std::vector<std::string>());
}

TEST_CASE("many stages, a device that holds too much, and no timeline are shown too", "[browser]") {
  Plan plan(StageGraph::chain(80));
  plan.page().timeline = nullptr;
  plan.page().ranks[3].kept = 4e9;
  Page page = plan.open("", {.width = 1280, .height = 1600});
  save(page.screenshot(), "plan-many");
  CHECK(page.count("#graph .stage") == 80);
  CHECK(page.count("#ranks .over") >= 1);
  CHECK(page.evaluate("document.getElementById('timeline-section').hidden") == true);
  CHECK(page.complaints() == std::vector<std::string>());
}

}  // namespace
}  // namespace stagecraft::tests
