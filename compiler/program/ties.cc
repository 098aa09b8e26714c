#include "stagecraft/compiler/program/ties.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "stagecraft/base/check.h"

namespace stagecraft {

void train_together(Partition& partition) {
  std::set<int> trained, seen;  // positions in the model
  for (const StageProgram& stage : partition.stages) {
    for (const StageParameter& parameter : stage.parameters) {
      if (parameter.trained) {
        trained.insert(parameter.position);
      }
    }
  }
  for (StageProgram& stage : partition.stages) {
    for (StageParameter& parameter : stage.parameters) {
      parameter.trained = trained.contains(parameter.position);
      parameter.counted = seen.insert(parameter.position).second;
    }
  }
}

std::vector<TiedParameter> tied_parameters(const Partition& partition) {
  std::map<int, TiedParameter> by_position;
  for (const StageProgram& stage : partition.stages) {
    for (const StageParameter& parameter : stage.parameters) {
      TiedParameter& of_model = by_position[parameter.position];
      of_model.name = parameter.name;
      of_model.stages.push_back(stage.id);
    }
  }
  std::vector<TiedParameter> tied;
  for (auto& [position, of_model] : by_position) {
    if (of_model.stages.size() > 1) {
      of_model.reduced = true;
      tied.push_back(std::move(of_model));
    }
  }
  return tied;
}

std::vector<Tie> ties_of(const CompiledProgram& program) {
  std::vector<Tie> ties;
  std::map<std::pair<std::vector<StageId>, at::ScalarType>, std::size_t> tie_of;
  for (const TiedParameter& tied : program.stage_graph.tied()) {
    const StageProgram& stage = program.partition.stages[tied.stages.front().index()];
    const auto parameter = std::ranges::find(stage.parameters, tied.name, &StageParameter::name);
    SC_CHECK(parameter != stage.parameters.end(), "a stage has the parameters that it is tied by");
    if (!parameter->trained) {
      continue;
    }
    const auto [entry, added] =
        tie_of.try_emplace({tied.stages, stage.at(parameter->value).dtype}, ties.size());
    if (added) {
      ties.push_back({.stages = tied.stages, .parameters = {}});
    }
    ties[entry->second].parameters.push_back(tied.name);
  }
  return ties;
}

}  // namespace stagecraft
