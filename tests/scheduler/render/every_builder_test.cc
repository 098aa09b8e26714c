/// Checks that every builder's schedules can be drawn in all three ways, and that each drawing
/// shows every task.
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/tests/scheduler/render/html/html_page.h"
#include "stagecraft/tests/scheduler/render/xml_fault.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns valid schedules of one builder, of several sizes.
std::vector<Schedule> schedules_of(const BuilderInfo& builder) {
  std::vector<Schedule> schedules;
  for (const auto& [devices, microbatches] : {std::pair{1, 1}, {2, 4}, {4, 8}, {8, 16}, {3, 5}}) {
    BuildRequest request{.devices = devices, .microbatches = microbatches};
    if (builder.takes_graph) {
      request.devices = 3;
      request.graph = StageGraph::from_edges(3, {{0, 2}, {1, 2}});
    }
    try {
      schedules.push_back(builder.build(request));
    } catch (const Error& error) {
      REQUIRE(error.code() == Errc::ScheduleParameter);  // some builders refuse some sizes
    }
  }
  return schedules;
}

TEST_CASE("the check of XML finds what is wrong", "[scheduler][render]") {
  CHECK(!xml_fault("<a b=\"1>2\"><c/>&lt;</a>"));
  for (const char* wrong : {"<a>", "<a></b>", "<a>&</a>", "<a b=\"<\"/>", "</a>"}) {
    CAPTURE(wrong);
    CHECK(xml_fault(wrong));
  }
}

TEST_CASE("every builder's schedules are drawn in all three ways", "[scheduler][render]") {
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const std::vector<Schedule> schedules = schedules_of(builder);
    REQUIRE(!schedules.empty());
    for (const Schedule& schedule : schedules) {
      const Timeline timeline = simulate(schedule, schedule.stage_graph());
      const std::string terminal = render(schedule);
      const std::string colored = render(schedule, {}, {.color = true});
      const std::string columns = render_svg(schedule, schedule.stage_graph(), nullptr);
      const std::string times = render_svg(schedule, schedule.stage_graph(), &timeline);
      CHECK(!xml_fault(columns));
      CHECK(!xml_fault(times));
      const auto page = data_of(render_html(schedule, schedule.stage_graph(), &timeline));
      REQUIRE(page["rows"].size() == schedule.rows().size());

      for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
        const std::string in_page = ' ' + std::string(page["rows"][r]) + ' ';
        std::size_t entries = 0;
        for (const Cell& cell : schedule.rows()[r]) {
          if (cell.idle()) {
            continue;
          }
          ++entries;
          const std::string name = to_string(cell);
          CHECK(terminal.find(name) != std::string::npos);
          CHECK(columns.find("<title>" + name + " on row") != std::string::npos);
          CHECK(times.find("<title>" + name + " on row") != std::string::npos);
          CHECK(in_page.find(' ' + name + ' ') != std::string::npos);
          for (const Task& task : cell.tasks()) {
            CHECK(colored.find('m' + to_string(task) + "\x1b[0m") != std::string::npos);
          }
        }
        CHECK(page["times"]["rows"][r]["starts"].size() == entries);
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
