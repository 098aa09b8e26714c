/// render_plan_page writes a plan as one HTML file: its stages and the values between them, the
/// predicted timeline, the bytes of every device against its memory, and time against memory of all
/// candidates.
///
///     PlanPage page{.title = "Llama on 4 devices", .stages = ..., .candidates = ...};
///     write(file, render_plan_page(page));
///
/// The file is self-contained like the schedule's page (html.h), which it embeds as the timeline.
/// It is made of render/html/plan_page/. `#theme=dark` selects the dark scheme. Pure.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// PlanPage is the content of the page. Units: seconds and bytes.
struct PlanPage {
  struct Stage {
    std::string name;
    int operators = 0;
    int device = 0;
    int copies = 1;      ///< of its row
    double forward = 0;  ///< of a microbatch
    double backward = 0;
    double bytes = 0;  ///< its peak
  };
  struct Edge {
    int from = 0;
    int to = 0;
    double bytes = 0;  ///< of a microbatch
  };
  /// Rank holds the bytes of a device at its peak.
  struct Rank {
    double parameters = 0;  ///< with gradients and optimizer state
    double kept = 0;        ///< for backwards
    double transient = 0;   ///< only while a task runs
  };
  struct Candidate {
    std::string name;
    double seconds = 0;
    double bytes = 0;  ///< of its fullest device
    bool chosen = false;
  };

  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< {"step", "1.2 s"}, beside the title
  std::vector<std::string> why;                            ///< sentences below the title
  std::vector<Stage> stages;
  std::vector<Edge> edges;
  std::vector<Rank> ranks;
  double budget = std::numeric_limits<double>::infinity();  ///< of each device; infinite: no limit
  std::vector<Candidate> candidates;  ///< in the order of the list, best first
  double bound = 0;                   ///< lower bound of a step; 0: not known
  /// The schedule, timeline and costs of the plan, all three or none; they must outlive the call.
  const Schedule* schedule = nullptr;
  const StageGraph* graph = nullptr;
  const Timeline* timeline = nullptr;
};

/// Returns the page.
/// Errors: ScheduleParameter for an edge to a stage that is not listed, figures that are not finite
/// (other than the budget), and more entries than a schedule's page holds.
[[nodiscard]] std::string render_plan_page(const PlanPage& page);

}  // namespace stagecraft
