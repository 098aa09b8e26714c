#include "stagecraft/scheduler/render/html/html.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/html/html_assets.h"
#include "stagecraft/scheduler/render/html/html_data.h"

namespace stagecraft {
namespace {

std::size_t count_entries(const Schedule& schedule) {
  std::size_t entries = 0;
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      entries += cell.idle() ? 0 : 1;
    }
  }
  return entries;
}

}  // namespace

std::string render_html(const Schedule& schedule,
                        const StageGraph& graph,
                        const Timeline* timeline,
                        const std::vector<Violation>& violations,
                        std::string_view title) {
  const std::size_t entries = count_entries(schedule);
  if (entries > kMaxHtmlEntries) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a page holds at most {} cells, but this schedule has {}; draw fewer "
                            "microbatches or rows",
                            kMaxHtmlEntries,
                            entries));
  }
  return drawing::kSchedulePage.document(
      title, drawing::html_data(schedule, graph, timeline, violations, title));
}

}  // namespace stagecraft
