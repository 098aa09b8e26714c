#include "stagecraft/scheduler/measured/costs_of_run.h"

#include <utility>

namespace stagecraft {
namespace {

/// Returns the quotient; `otherwise` if `other` is not known.
double ratio(double one, double other, double otherwise) {
  return other > 0 ? one / other : otherwise;
}

Durations completed(Durations measured, const Durations& known) {
  const double halves = measured.backward_input + measured.backward_weight;
  const double known_halves = known.backward_input + known.backward_weight;
  if (halves == 0) {
    const double whole = known.backward > 0 ? known.backward : known_halves;
    measured.backward_input = measured.backward * ratio(known.backward_input, whole, 0.5);
    measured.backward_weight = measured.backward * ratio(known.backward_weight, whole, 0.5);
  } else if (measured.backward == 0) {
    measured.backward = halves * ratio(known.backward, known_halves, 1);
  }
  return measured;
}

}  // namespace

Costs costs_of_run(const Measurements& measured, const Costs& known, const StageGraph& graph) {
  const Costs seen = measured.costs();
  Costs made = known;
  made.device.processors = 0;
  made.devices.clear();  // each stage was measured on its own device
  made.stages = {};
  made.stages.memory = known.stages.memory;
  for (std::size_t s = 0; s < seen.stages.each.size(); ++s) {
    made.stages.each.push_back(completed(seen.stages.each[s], known.stages.of_stage(StageId(s))));
  }
  settle_halves(made.stages, graph);
  made.links.each = seen.links.each;
  return made;
}

void settle_halves(StageCosts& costs, const StageGraph& graph) {
  for (std::size_t s = 0; s < costs.each.size(); ++s) {
    const StageId stage(s);
    Durations& durations = costs.each[s];
    if (!graph.needs_weight_grad(stage)) {
      durations.backward_input += std::exchange(durations.backward_weight, 0.0);
    } else if (graph.is_surplus({CellKind::BackwardInput, stage, Microbatch(0)})) {
      durations.backward_weight += std::exchange(durations.backward_input, 0.0);
    }
  }
}

}  // namespace stagecraft
