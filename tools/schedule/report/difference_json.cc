#include <vector>

#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/schedule/report/difference.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

/// A side that is not valid has null figures.
Json side_json(const DifferentSide& side, bool bytes) {
  Json idle = Json::array();
  Json in_flight = Json::array();
  Json peak_bytes = Json::array();
  const bool simulated = side.timeline.has_value();
  for (std::size_t r = 0; simulated && r < side.timeline->rows.size(); ++r) {
    idle.push_back(number_json(side.timeline->rows[r].idle));
    in_flight.push_back(number_json(side.in_flight(r)));
    peak_bytes.push_back(number_json(side.timeline->rows[r].peak_bytes));
  }
  const auto figure = [&](Json value) { return simulated ? std::move(value) : Json(nullptr); };
  Json json{{"file", side.file.path},
            {"devices", side.file.schedule.rows().size()},
            {"stages", side.file.graph.size()},
            {"replicas", side.file.graph.replicas()},
            {"microbatches", side.file.schedule.microbatches()},
            {"violations", side.violations},
            {"stage_weight", number_json(side.weight)},
            {"makespan", simulated ? number_json(side.timeline->makespan) : Json(nullptr)},
            {"bubble_fraction",
             simulated ? number_json(side.timeline->bubble_fraction()) : Json(nullptr)},
            {"idle", figure(idle)},
            {"peak_in_flight", figure(in_flight)}};
  if (bytes) {
    json["peak_bytes"] = figure(peak_bytes);
  }
  return json;
}

}  // namespace

Json difference_json(const Difference& d) {
  Json rows = Json::array();
  for (const DifferentRow& row : d.rows) {
    rows.push_back(
        {{"row", row.row}, {"position", row.position}, {"a", row.task_a}, {"b", row.task_b}});
  }
  return {{"equal", d.none()},
          {"normalized", d.a.weight != d.b.weight},
          {"differs", d.beside.empty() ? Json(nullptr) : Json(d.beside)},
          {"rows", rows},
          {"a", side_json(d.a, d.bytes)},
          {"b", side_json(d.b, d.bytes)}};
}

}  // namespace stagecraft::tools
