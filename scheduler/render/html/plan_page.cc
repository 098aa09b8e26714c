#include "stagecraft/scheduler/render/html/plan_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/scheduler/render/html/html_assets.h"
#include "stagecraft/scheduler/render/html/json_text.h"
#include "stagecraft/scheduler/render/palette.h"

namespace stagecraft {
namespace {

using drawing::json_list;
using drawing::json_number;
using drawing::json_text;

std::string stage_json(const PlanPage::Stage& stage) {
  return fmt::format(
      R"({{"name":{},"operators":{},"device":{},"copies":{},"forward":{},"backward":{},"bytes":{}}})",
      json_text(stage.name),
      stage.operators,
      stage.device,
      stage.copies,
      json_number(stage.forward),
      json_number(stage.backward),
      json_number(stage.bytes));
}

std::string rank_json(const PlanPage::Rank& rank) {
  return fmt::format(R"({{"parameters":{},"kept":{},"transient":{}}})",
                     json_number(rank.parameters),
                     json_number(rank.kept),
                     json_number(rank.transient));
}

std::string candidate_json(const PlanPage::Candidate& candidate) {
  return fmt::format(R"({{"name":{},"seconds":{},"bytes":{},"chosen":{}}})",
                     json_text(candidate.name),
                     json_number(candidate.seconds),
                     json_number(candidate.bytes),
                     candidate.chosen);
}

std::string edges_json(const PlanPage& page) {
  const auto is_stage = [&](int s) { return s >= 0 && s < std::ssize(page.stages); };
  return json_list(page.edges, [&](const PlanPage::Edge& edge) {
    if (!is_stage(edge.from) || !is_stage(edge.to)) {
      throw Error(
          Errc::ScheduleParameter,
          fmt::format("a plan's page has an edge from stage {} to {} of {} stages; list the "
                      "stages at both ends",
                      edge.from,
                      edge.to,
                      page.stages.size()));
    }
    return fmt::format("[{},{},{}]", edge.from, edge.to, json_number(edge.bytes));
  });
}

/// Returns the colors of the timeline below.
std::string stage_colors(int stages, ColorScheme scheme) {
  std::vector<std::string> colors;
  for (int s = 0; s < std::max(stages, kStageColors); ++s) {
    colors.push_back(task_color({.kind = CellKind::Forward, .stage = StageId(s)}, scheme, stages));
  }
  return json_list(colors, json_text);
}

std::string timeline_json(const PlanPage& page) {
  if (page.schedule == nullptr || page.graph == nullptr || page.timeline == nullptr) {
    return "null";
  }
  return json_text(render_html(*page.schedule, *page.graph, page.timeline, {}, "Timeline"));
}

}  // namespace

std::string render_plan_page(const PlanPage& page) {
  std::string data = fmt::format(
      "{{\"title\":{},\"facts\":{},\"why\":{},\n",
      json_text(page.title),
      json_list(page.facts,
                [](const auto& fact) {
                  return fmt::format("[{},{}]", json_text(fact.first), json_text(fact.second));
                }),
      json_list(page.why, json_text));
  data += fmt::format("\"stages\":{},\n\"edges\":{},\n\"ranks\":{},\n",
                      json_list(page.stages, stage_json),
                      edges_json(page),
                      json_list(page.ranks, rank_json));
  data += fmt::format("\"budget\":{},\"bound\":{},\n\"candidates\":{},\n",
                      std::isinf(page.budget) ? "null" : json_number(page.budget),
                      json_number(page.bound),
                      json_list(page.candidates, candidate_json));
  data += fmt::format("\"colors\":{{\"light\":{},\"dark\":{}}},\n\"timeline\":{}}}",
                      stage_colors(static_cast<int>(page.stages.size()), ColorScheme::Light),
                      stage_colors(static_cast<int>(page.stages.size()), ColorScheme::Dark),
                      timeline_json(page));
  return drawing::kPlanPage.document(page.title, data);
}

}  // namespace stagecraft
