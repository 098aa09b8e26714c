#include "stagecraft/scheduler/simulate/driver_row.h"

#include <string>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/render/tikz.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Stage `divided` of a chain is three parts: before, on the driver, after.
struct Divided {
  StageParts parts;
  StageGraph graph;

  explicit Divided(int stages, int divided = 1) : graph(StageGraph::chain(stages + 2)) {
    for (int s = 0; s < stages; ++s) {
      parts.push_back({StageId(s), "s"});
      if (s == divided) {
        parts.push_back({StageId(s), "s", true});
        graph.set_needs_weight_grad(StageId(static_cast<int>(parts.size()) - 1), false);
        parts.push_back({StageId(s), "s"});
      }
    }
  }

  [[nodiscard]] Schedule of(const Schedule& schedule) const {
    return with_driver_row(schedule, Layout::of(schedule), graph, parts);
  }
};

std::string row(const Schedule& schedule, std::size_t number) {
  std::string text;
  for (const Cell& cell : schedule.rows()[number]) {
    text += to_string(cell) + " ";
  }
  return text;
}

TEST_CASE("the driver has the last row, and its stage's tasks are divided",
          "[scheduler][driver-row]") {
  const Schedule schedule = Divided(2).of(one_f_one_b(2, 2));
  REQUIRE(schedule.rows().size() == 3);
  CHECK(row(schedule, 0) == "0F0 0F1 0B0 0B1 ");
  CHECK(row(schedule, 1) == "1F0 3F0 3B0 1B0 1F1 3F1 3B1 1B1 ");
  CHECK(row(schedule, 2) == "2F0 2B0 2F1 2B1 ");
}

TEST_CASE("code of the driver has no half for weights, and none without gradient",
          "[scheduler][driver-row]") {
  Divided split(2);
  CHECK(row(split.of(zb_h1(2, 2)), 2) == "2F0 2B0 2F1 2B1 ");
  split.graph.set_needs_input_grad(StageId(2), false);
  CHECK(row(split.of(one_f_one_b(2, 2)), 2) == "2F0 2F1 ");
}

TEST_CASE("every builder's schedule stays valid with the driver's row", "[scheduler][driver-row]") {
  for (const BuilderInfo& builder : builders()) {
    for (const int divided : {0, 1, 3}) {
      CAPTURE(builder.name, divided);
      const Divided four(4, divided);
      const Schedule schedule = schedule_for(builder.name, StageGraph::chain(4), 8);
      const Layout layout = Layout::of(schedule);
      REQUIRE(layout.model_stages() == 4);
      const Schedule with_row = four.of(schedule);
      CHECK(with_row.rows().size() == schedule.rows().size() + 1);
      CHECK(validate(with_row, Layout::of(with_row).expand(four.graph)).empty());
    }
  }
}

TEST_CASE("code in the first stage has its place in split backwards", "[scheduler][driver-row]") {
  // Two stages of three parts each. The first part owes nobody a gradient.
  StageParts parts;
  StageGraph graph = StageGraph::chain(6);
  graph.set_needs_input_grad(StageId(0), false);
  for (int p = 0; p < 6; ++p) {
    parts.push_back({StageId(p / 3), "s", p % 3 == 1});
    graph.set_needs_weight_grad(StageId(p), p % 3 != 1);
  }
  const Schedule schedule = zb_h1(2, 8);
  const Schedule with_row = with_driver_row(schedule, Layout::of(schedule), graph, parts);
  CHECK(validate(with_row, graph).empty());
}

TEST_CASE("drawings name the driver's row", "[scheduler][driver-row]") {
  const Divided divided(2);
  const Schedule schedule = divided.of(one_f_one_b(2, 2));
  CHECK(row_name(schedule, 1) == "d1");
  CHECK(row_name(schedule, 2) == "driver");
  CHECK(row_name(one_f_one_b(2, 2), 1) == "d1");
  CHECK(render(schedule).find("\ndriver  2F0") != std::string::npos);
  CHECK(render_svg(schedule, divided.graph, nullptr).find(">driver</text>") != std::string::npos);
  CHECK(render_tikz(schedule, divided.graph, nullptr).find("{driver}") != std::string::npos);
  CHECK(render_html(schedule, divided.graph, nullptr).find("\"hasDriverRow\":true") !=
        std::string::npos);
}

TEST_CASE("ranks of copies share one driver", "[scheduler][driver-row]") {
  const Schedule schedule = Divided(2).of(in_copies(one_f_one_b(2, 2), 2));
  const Layout layout = Layout::of(schedule);
  CHECK(layout.ranks() == 5);
  CHECK(layout.ranks_of(2).front() == Rank(4));
  CHECK(layout.units_per_rank(StageId(2)) == 2);
}

}  // namespace
}  // namespace stagecraft
