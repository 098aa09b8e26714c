#include "stagecraft/scheduler/builders/parts/row_list.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/simulate/to_array.h"

namespace stagecraft {

Schedule finish(std::vector<Schedule::Row> rows, const StageGraph& stages, int microbatches) {
  Schedule::Headers headers;
  if (!stages.is_chain() || stages.replicas() > 1 || !stages.microbatch_sizes().empty()) {
    headers.graph = stages;
    headers.microbatches = microbatches;
  }
  return to_array(Schedule(Schedule::Form::List, std::move(rows), std::move(headers)), stages);
}

void require_positive(std::string_view builder, std::string_view what, int value) {
  if (value < 1) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} needs {} >= 1, got {}; nearest: 1", builder, what, value));
  }
}

void require_legal(std::string_view builder,
                   std::string_view constraint,
                   std::string_view what,
                   int value,
                   const std::function<bool(int)>& legal) {
  if (legal(value)) {
    return;
  }
  constexpr int kFarthest = 1 << 20;
  std::string nearest;
  for (const int step : {-1, 1}) {
    for (int v = value + step; v >= 1 && v <= value + kFarthest; v += step) {
      if (legal(v)) {
        nearest += fmt::format("{}{}", nearest.empty() ? "" : " or ", v);
        break;
      }
    }
  }
  throw Error(Errc::ScheduleParameter,
              fmt::format("{} needs {}, got {} {}; nearest: {}",
                          builder,
                          constraint,
                          what,
                          value,
                          nearest.empty() ? "none" : nearest));
}

void require_acyclic(std::string_view builder, const StageGraph& stages) {
  const std::vector<StageId> cycle = stages.find_cycle();
  if (!cycle.empty()) {
    std::string text;
    for (const StageId s : cycle) {
      text += to_string(s) + " -> ";
    }
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} needs a stage graph without a cycle, found {}{}; remove one edge",
                            builder,
                            text,
                            to_string(cycle.front())));
  }
}

}  // namespace stagecraft
