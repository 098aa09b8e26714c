#include "stagecraft/scheduler/render/html/html.h"

#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/scheduler/occurrences.h"
#include "stagecraft/tests/scheduler/render/html/html_page.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string html_of(const Schedule& schedule) {
  const Timeline timeline = simulate(schedule, schedule.stage_graph());
  return render_html(schedule, schedule.stage_graph(), &timeline);
}

TEST_CASE("a page knows cells, times, and what each task waited for", "[scheduler][render]") {
  const auto data = data_of(html_of(one_f_one_b(2, 2)));
  CHECK(data["rows"] == nlohmann::json{"0F0 0F1 1 0B0 1 0B1", "1 1F0 1B0 1F1 1B1 1"});
  CHECK(data["edges"] == nlohmann::json{{0, 1, 1}});
  CHECK(data["times"]["makespan"] == 9);
  const auto& row = data["times"]["rows"][0];
  CHECK(row["starts"] == nlohmann::json{0, 1, 4, 7});
  CHECK(row["ends"] == nlohmann::json{1, 2, 6, 9});
  CHECK(row["waits"] == ". . 1B0 1B1");
  CHECK(row["transfers"].is_null());
  CHECK(row["peak"] == 2);
}

TEST_CASE("a page knows the bytes that the simulation counted", "[scheduler][render]") {
  const Schedule schedule = one_f_one_b(2, 2);
  const MemoryModel memory{.fixed = {100, 200}, .activations = {10, 20}, .transient = {1, 2}};
  const Timeline timeline =
      simulate(schedule, schedule.stage_graph(), {.stages = {.memory = memory}});
  const auto data = data_of(render_html(schedule, schedule.stage_graph(), &timeline));
  const auto& row = data["times"]["rows"][0];
  CHECK(row["bytes"] == nlohmann::json{111, 121, 121, 111});  // 0F0 0F1 0B0 0B1
  CHECK(row["bytesAfter"] == nlohmann::json{110, 120, 110, 100});
  CHECK(data_of(html_of(schedule))["times"]["rows"][0]["bytes"].is_null());
}

TEST_CASE("a page knows which tasks do nothing", "[scheduler][render][surplus]") {
  StageGraph graph = StageGraph::chain(3);
  graph.freeze({0});
  const Schedule schedule = one_f_one_b(3, 2);
  const Timeline timeline = simulate(schedule, graph);
  const auto data = data_of(render_html(schedule, graph, &timeline));
  CHECK(data["surplus"] == nlohmann::json{{"0", "BIW"}, {"1", "I"}});
  CHECK(data["surplusText"] == "2 tasks do nothing: 2 B of stage 0 (no backward)");
  CHECK(data["keeps"] == nlohmann::json{1, 2});
  CHECK(data["edges"] == nlohmann::json{{0, 1, 0}, {1, 2, 1}});
  const auto& row = data["times"]["rows"][0];
  CHECK(row["starts"] == nlohmann::json{0, 1, 2, 2});
  CHECK(row["ends"] == nlohmann::json{1, 2, 2, 2});
  const auto plain = data_of(html_of(schedule));
  CHECK(plain["surplus"] == nlohmann::json::object());
  CHECK(plain["surplusText"] == "");
}

TEST_CASE("a page names both tasks of a group", "[scheduler][render]") {
  CHECK_THAT(std::string(data_of(html_of(dualpipev(2, 4)))["rows"][0]),
             ContainsSubstring("0F3|3B1"));
}

TEST_CASE("without a timeline a page has cells and faults", "[scheduler][render]") {
  const Schedule bad = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const auto data =
      data_of(render_html(bad, bad.stage_graph(), nullptr, validate(bad, bad.stage_graph())));
  CHECK(data["times"].is_null());
  REQUIRE(data["violations"].size() == 1);
  const auto& violation = data["violations"][0];
  CHECK(violation["rule"] == "V29");
  CHECK(violation["cycle"].size() == 4);
  CHECK(violation["cells"].size() == 4);
  CHECK(violation["repair"] == nlohmann::json{0, 1, 2});
}

TEST_CASE("no text ends the element it is embedded in", "[scheduler][render]") {
  const std::string evil = "</script><!--<script>\"\\\n\x01&";
  const Schedule schedule = one_f_one_b(2, 1);
  StageGraph graph = schedule.stage_graph();
  graph.set_name(StageId(0), evil);
  const std::string plain = render_html(schedule, schedule.stage_graph(), nullptr);
  const std::string page = render_html(schedule, graph, nullptr, {}, evil);
  CHECK(occurrences(page, "<script") == occurrences(plain, "<script"));
  CHECK(occurrences(page, "</script") == occurrences(plain, "</script"));
  CHECK(occurrences(page, "<!--") == occurrences(plain, "<!--"));
  CHECK(data_of(page)["names"]["0"] == evil);
  CHECK(data_of(page)["title"] == evil);
}

TEST_CASE("a page asks for nothing outside itself", "[scheduler][render]") {
  const std::string page = html_of(one_f_one_b(2, 2));
  for (const char* foreign : {"http://", "https://", "src=", "<link", "@import", "url("}) {
    CAPTURE(foreign);
    CHECK(page.find(foreign) == std::string::npos);
  }
  CHECK_THAT(page, ContainsSubstring("default-src 'none'"));
}

TEST_CASE("pages that could not be shown are refused", "[scheduler][render]") {
  const Schedule large = one_f_one_b(8, 65'000);
  CHECK_THROWS_AS(render_html(large, large.stage_graph(), nullptr), Error);

  const Schedule schedule = one_f_one_b(2, 2);
  Costs endless;
  endless.stages.usual.forward = std::numeric_limits<double>::infinity();
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), endless);
  CHECK_THROWS_WITH(render_html(schedule, schedule.stage_graph(), &timeline),
                    ContainsSubstring("finite"));
}

TEST_CASE("violations beyond the listed ones are counted", "[scheduler][render]") {
  const std::vector<Violation> many(kMaxHtmlViolations + 5, Violation{.rule = "V04"});
  const Schedule schedule = one_f_one_b(2, 2);
  const auto data = data_of(render_html(schedule, schedule.stage_graph(), nullptr, many));
  CHECK(data["violations"].size() == kMaxHtmlViolations);
  CHECK(data["unlisted"] == 5);
}

}  // namespace
}  // namespace stagecraft
