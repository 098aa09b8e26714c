/// V32: the stage graph has no cycle. V33: stages that share a parameter across rows sum its
/// gradients.
#include <fmt/format.h>

#include "stagecraft/scheduler/rules/causes/wait_cycle.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

void check_stage_graph(const RuleInput& in, Violations& out) {
  const std::vector<StageId> cycle = in.graph.find_cycle();
  if (cycle.empty()) {
    return;
  }
  std::vector<std::string> stages;
  for (const StageId s : cycle) {
    stages.push_back(to_string(s));
  }
  Violation v;
  v.rule = "V32";
  v.missing = cycle_text(stages);
  v.message = fmt::format(
      "the stages {} feed each other in a circle; a stage graph has no cycle, so remove one of "
      "these edges",
      v.missing);
  out.push_back(std::move(v));
}

void check_tied_parameters(const RuleInput& in, Violations& out) {
  for (const TiedParameter& tied : in.graph.tied()) {
    for (std::size_t i = 1; i < tied.stages.size() && !tied.reduced; ++i) {
      const StageId first = tied.stages.front();
      const StageId other = tied.stages[i];
      const auto row = in.placement.row(first);
      if (row && row == in.placement.row(other)) {
        continue;
      }
      Violation v;
      v.rule = "V33";
      v.row = row.value_or(Violation::kNowhere);
      v.missing = fmt::format("reduction of {}", tied.name);
      v.message = fmt::format(
          "parameter '{}' is used by stage {} ('{}', {}) and stage {} ('{}', {}), and nothing sums "
          "its gradients over them before "
          "an update; put both stages on one row, keep the parameter in one stage, or declare its "
          "reduction",
          tied.name,
          first.value,
          in.graph.name(first),
          row ? fmt::format("row {}", *row) : "no row",
          other.value,
          in.graph.name(other),
          in.placement.row(other) ? fmt::format("row {}", *in.placement.row(other)) : "no row");
      out.push_back(std::move(v));
    }
  }
}

}  // namespace stagecraft::rules
