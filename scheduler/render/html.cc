#include "stagecraft/scheduler/render/html.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/escape.h"
#include "stagecraft/scheduler/render/html_assets.h"
#include "stagecraft/scheduler/render/html_data.h"

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

/// Moves `rest` behind `mark` and returns what stood before it.
std::string_view take_until(std::string_view& rest, std::string_view mark) {
  const std::size_t at = rest.find(mark);
  const std::string_view before = rest.substr(0, at);
  rest.remove_prefix(at + mark.size());
  return before;
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
                fmt::format("a page holds at most {} cells, this schedule has {}; draw fewer "
                            "microbatches or rows",
                            kMaxHtmlEntries,
                            entries));
  }
  std::string_view rest = render::kPage;
  std::string page(take_until(rest, "{{title}}"));
  page += render::escaped(title);
  page += take_until(rest, "{{style}}");
  page += render::kStyle;
  page += take_until(rest, "{{data}}");
  page += render::html_data(schedule, graph, timeline, violations, title);
  page += take_until(rest, "{{script}}");
  page += render::kScript;
  page += rest;
  return page;
}

}  // namespace stagecraft
