#include "stagecraft/tools/program/program_costs.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/profile/placed_times.h"
#include "stagecraft/compiler/measure/operator_costs.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/computing_type.h"
#include "stagecraft/scheduler/planners/request/work_graph.h"

namespace stagecraft::tools {
int samples_of(const Program& program) {
  const std::vector<BatchSlice>& inputs = program.compiled().inputs;
  const auto split = std::ranges::find(inputs, false, &BatchSlice::replicated);
  return split == inputs.end() ? 1 : static_cast<int>(split->sizes[0]);
}

Costs operator_costs(const Program& program,
                     const Batch& inputs,
                     const Batch& labels,
                     int threads) {
  Costs costs;
  costs.device.threads = threads;
  costs.device.precision = computing_type(program.compiled().graph);
  costs.operators = program.cut().operators;
  if (costs.operators.empty()) {
    costs.operators = measure_operators(program, inputs, labels, {.threads = threads});
  }
  // Assume an optimizer with two tensors and no time: only `stagecraft profile` measures its time.
  costs.parameters = place_updates(program.compiled().graph.parameters,
                                   /*update=*/0,
                                   /*states=*/2,
                                   /*master_weights=*/false,
                                   costs.operators);
  costs.samples = samples_of(program);
  costs.batch = costs.samples * program.microbatches();
  return costs;
}

std::optional<std::string> first_difference(const Costs& costs, const Program& program) {
  const Graph& graph = program.compiled().graph;
  if (costs.operators.size() != graph.nodes.size()) {
    return fmt::format(
        "it has {} operators, the model {}", costs.operators.size(), graph.nodes.size());
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (const std::string name = operator_name(graph.nodes[n]); costs.operators[n].name != name) {
      return fmt::format("its operator {} is {}, the model's {}", n, costs.operators[n].name, name);
    }
  }
  std::map<std::string_view, double> bytes;
  for (const ParameterCost& parameter : costs.parameters) {
    bytes[parameter.name] = parameter.bytes;
  }
  for (const NamedTensor& parameter : graph.parameters) {
    const auto known = bytes.find(parameter.name);
    const auto own = static_cast<double>(parameter.tensor.nbytes());
    if (known != bytes.end() && known->second != own) {
      return fmt::format(
          "its parameter {} has {} bytes, the model's {}", parameter.name, known->second, own);
    }
  }
  return std::nullopt;
}

Costs with_stages(const Costs& costs, const Program& program) {
  const std::vector<int>& stage_of = program.compiled().assignment.stage_of;
  const WorkGraph graph = WorkGraph::of(costs, samples_of(program));
  StageOperators stages(program.compiled().partition.stages.size());
  std::size_t node = 0;  // operators are in the order of the program's nodes
  for (int op = 0; op < graph.size(); ++op) {
    stages[static_cast<std::size_t>(stage_of[node])].push_back(op);
    node += graph.ids(op).size();
  }
  const Costs of_stages = costs_of(costs, graph, stages);
  Costs made = costs;
  for (std::size_t n = 0; n < made.operators.size(); ++n) {
    made.operators[n].stage = StageId(stage_of[n]);
  }
  made.stages = of_stages.stages;
  made.links = of_stages.links;
  return made;
}

}  // namespace stagecraft::tools
