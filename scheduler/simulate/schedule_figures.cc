#include "stagecraft/scheduler/simulate/schedule_figures.h"

#include <algorithm>

#include "stagecraft/scheduler/costs/cut_costs.h"
#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

std::size_t count_messages(const Schedule& schedule, const StageGraph& graph) {
  const TaskGraph tasks(schedule.rows(), graph, schedule.microbatches());
  std::size_t messages = 0;
  for (const Entry& entry : tasks.entries()) {
    for (const Task& task : entry.cell->tasks()) {
      tasks.for_each_prerequisite(task, [&](const Task& prerequisite) {
        messages += tasks.entry(tasks.find(prerequisite)).row != entry.row ? 1 : 0;
      });
    }
  }
  return messages;
}

double peak_of(const Schedule::Row& row,
               const MemoryModel& memory,
               const StageGraph& graph,
               int units) {
  RowMemory held(memory, graph, units);
  double peak = 0;
  for (const Cell& cell : row) {
    peak = std::max(peak, held.run(cell.tasks()));
  }
  return peak;
}

}  // namespace

ScheduleFigures schedule_figures(const Schedule& schedule,
                                 const StageGraph& graph,
                                 const Costs& costs) {
  const int devices = static_cast<int>(schedule.rows().size());
  const Timeline timeline =
      simulate(schedule, graph, cut_costs(costs, stages_of(costs, devices), graph));
  Costs one_each;
  one_each.stages.memory.activations.assign(static_cast<std::size_t>(devices), 1);
  const MemoryModel share = cut_costs(one_each, devices, graph).stages.memory;

  const std::vector<RowShare> shares = row_shares(schedule);
  ScheduleFigures figures;
  figures.stages = graph.size() / graph.replicas();
  figures.makespan = timeline.makespan;
  for (std::size_t r = 0; r < timeline.rows.size(); ++r) {
    const RowTimeline& row = timeline.rows[r];
    figures.peak_in_flight = std::max(figures.peak_in_flight, row.peak_in_flight);
    figures.peak_bytes = std::max(figures.peak_bytes, row.peak_bytes);
    figures.peak_microbatches = std::max(
        figures.peak_microbatches, peak_of(schedule.rows()[r], share, graph, shares[r].units));
  }
  figures.bubble = timeline.bubble_fraction();
  figures.messages = count_messages(schedule, graph);
  return figures;
}

}  // namespace stagecraft
