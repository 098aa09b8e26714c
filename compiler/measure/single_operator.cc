#include "stagecraft/compiler/measure/single_operator.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "stagecraft/compiler/stage/probe.h"
#include "stagecraft/compiler/stage/stage_program_of.h"

namespace stagecraft {
namespace {

/// Returns a program of the node that passes on all its results or only the first.
StageProgram program_of(const Graph& graph, const Node& node, bool all) {
  StageProgram program{.id = StageId(0), .name = operator_name(node)};
  std::set<ValueId> inputs;
  for (const ValueId id : reads_of(node)) {
    const bool given = id != kNoValue && (graph.at(id).kind == ValueKind::Input ||
                                          graph.at(id).kind == ValueKind::Label ||
                                          graph.at(id).kind == ValueKind::Computed);
    if (given && inputs.insert(id).second) {
      program.inputs.push_back({StageInput::Source::Stage, 0, id});
    }
  }
  for (const ValueId result : node.results) {
    if (result == kNoValue) {
      continue;
    }
    if (program.loss == kNoValue) {
      program.loss = result;
    } else if (all) {
      program.outputs.push_back({result, {}, {}});
    }
  }
  complete_from(graph, {node}, program);
  return program;
}

}  // namespace

SingleOperator::SingleOperator(const Graph& graph, const Node& node, bool all)
    : SingleOperator(graph, program_of(graph, node, all)) {}

SingleOperator::SingleOperator(const Graph& graph, StageProgram program)
    : program_(std::move(program)),
      interpreter_(program_, program_.chunks.front()),
      state_(probe_state(graph, program_)) {}

std::vector<ValueId> SingleOperator::inputs() const {
  std::vector<ValueId> ids;
  std::ranges::transform(program_.inputs, std::back_inserter(ids), &StageInput::value);
  return ids;
}

std::vector<ValueId> SingleOperator::results() const {
  std::vector<ValueId> ids;
  if (program_.loss != kNoValue) {
    ids.push_back(program_.loss);
  }
  std::ranges::transform(program_.outputs, std::back_inserter(ids), &StageOutput::value);
  return ids;
}

SingleOperator::Tensors SingleOperator::run(const Tensors& inputs) const {
  ChunkResult result = interpreter_.run(inputs, state_, kProbeKey);
  Tensors all;
  if (program_.loss != kNoValue) {
    all.push_back(std::move(result.loss));
  }
  std::ranges::move(result.outputs, std::back_inserter(all));
  return all;
}

}  // namespace stagecraft
