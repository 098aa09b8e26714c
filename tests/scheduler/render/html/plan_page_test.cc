#include "stagecraft/scheduler/render/html/plan_page.h"

#include <limits>
#include <set>
#include <string>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/tests/scheduler/render/html/html_page.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

PlanPage two_stages() {
  return {.title = "Two",
          .facts = {{"step", "3 s"}},
          .why = {"rank 1 computes most"},
          .stages = {{"first", 3, 0, 1, 0.5, 1, 100}, {"second", 4, 1, 2, 0.25, 0.5, 200}},
          .edges = {{0, 1, 64}},
          .ranks = {{10, 20, 30}, {40, 50, 60}},
          .budget = 1000,
          .candidates = {{"a", 3, 150, true}, {"b", 4, 120, false}},
          .bound = 2};
}

TEST_CASE("a plan's page knows stages, ranks and candidates", "[scheduler][render]") {
  const auto data = data_of(render_plan_page(two_stages()));
  CHECK(data["title"] == "Two");
  CHECK(data["facts"][0] == nlohmann::json::array({"step", "3 s"}));
  CHECK(data["why"] == nlohmann::json{"rank 1 computes most"});
  CHECK(data["stages"][1]["name"] == "second");
  CHECK(data["stages"][1]["copies"] == 2);
  CHECK(data["stages"][1]["backward"] == 0.5);
  CHECK(data["edges"] == nlohmann::json{{0, 1, 64}});
  CHECK(data["ranks"][1]["kept"] == 50);
  CHECK(data["budget"] == 1000);
  CHECK(data["bound"] == 2);
  CHECK(data["candidates"][0]["chosen"] == true);
  CHECK(data["candidates"][1]["seconds"] == 4);
  CHECK(data["timeline"].is_null());
}

TEST_CASE("a plan's page has a color for each stage, the schedule's own", "[scheduler][render]") {
  PlanPage page = two_stages();
  page.stages.resize(32, page.stages.front());
  page.edges.clear();
  const auto colors = data_of(render_plan_page(page))["colors"]["light"];
  CHECK(std::set<std::string>(colors.begin(), colors.end()).size() == 32);
  const Schedule schedule = one_f_one_b(32, 2);
  const auto drawn = data_of(render_html(schedule, schedule.stage_graph(), nullptr))["colors"];
  for (std::size_t stage = 0; stage < 32; ++stage) {
    CHECK(colors[stage] == drawn["light"]["stage"][5 * stage]);  // by kind, F first
  }
}

TEST_CASE("a plan's page holds its schedule's page, and no text ends an element (H-1)",
          "[scheduler][render]") {
  PlanPage page = two_stages();
  page.stages[0].name = "</script><b>";
  page.title = "<i>";
  page.budget = std::numeric_limits<double>::infinity();
  const Schedule schedule = one_f_one_b(2, 2);
  const StageGraph graph = schedule.stage_graph();
  const Timeline timeline = simulate(schedule, graph);
  page.schedule = &schedule;
  page.graph = &graph;
  page.timeline = &timeline;
  const std::string html = render_plan_page(page);
  CHECK_THAT(html, ContainsSubstring("<title>&lt;i&gt;</title>"));
  const auto data = data_of(html);
  CHECK(data["stages"][0]["name"] == "</script><b>");
  CHECK(data["budget"].is_null());
  CHECK(data_of(std::string(data["timeline"]))["rows"].size() == 2);
}

TEST_CASE("figures that no page can show are refused", "[scheduler][render][bad-input]") {
  PlanPage page = two_stages();
  page.edges.push_back({1, 2, 0});
  CHECK_THAT(refusal([&] { (void)render_plan_page(page); }, Errc::ScheduleParameter),
             ContainsSubstring("from stage 1 to 2 of 2 stages"));
  page = two_stages();
  page.candidates[0].seconds = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(refusal([&] { (void)render_plan_page(page); }, Errc::ScheduleParameter),
             ContainsSubstring("finite"));
}

}  // namespace
}  // namespace stagecraft
