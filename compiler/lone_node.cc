#include "stagecraft/compiler/lone_node.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "stagecraft/compiler/random.h"

namespace stagecraft {
namespace {

constexpr RandomKey kMeasuringKey{.seed = 1, .step = 1, .microbatch = 1};

StageProgram program_of(const Graph& graph, const Node& node, bool all) {
  StageProgram program{.id = StageId(0), .name = operator_name(node)};
  program.nodes = {node};
  std::set<int> parameters, buffers, constants;
  std::set<ValueId> inputs;
  for (const ValueId id : reads_of(node)) {
    if (id == kNoValue) {
      continue;
    }
    const Value& value = graph.at(id);
    switch (value.kind) {
      case ValueKind::Parameter:
        parameters.insert(value.position);
        break;
      case ValueKind::Buffer:
        buffers.insert(value.position);
        break;
      case ValueKind::Constant:
        constants.insert(value.position);
        break;
      case ValueKind::Input:
      case ValueKind::Label:
      case ValueKind::Computed:
        if (inputs.insert(id).second) {
          program.inputs.push_back({StageInput::Source::Stage, 0, id});
        }
        break;
    }
  }
  program.parameters.assign(parameters.begin(), parameters.end());
  program.buffers.assign(buffers.begin(), buffers.end());
  program.constants.assign(constants.begin(), constants.end());
  for (const ValueId result : node.results) {
    if (result == kNoValue) {
      continue;
    }
    if (program.loss == kNoValue) {
      program.loss = result;  // handed on with the strides it has, which an output is not
    } else if (all) {
      program.outputs.push_back({result, {}, {}});
    }
  }
  return program;
}

}  // namespace

LoneNode::LoneNode(const Graph& graph, const Node& node, bool all)
    : program_(program_of(graph, node, all)), interpreter_(graph, program_) {
  for (const int p : program_.parameters) {
    const at::Tensor& original = graph.parameters[static_cast<std::size_t>(p)].tensor;
    state_.parameters.push_back(original.detach().requires_grad_(original.requires_grad()));
  }
  for (const int b : program_.buffers) {
    state_.buffers.push_back(graph.buffers[static_cast<std::size_t>(b)].tensor.clone());
  }
}

std::vector<ValueId> LoneNode::inputs() const {
  std::vector<ValueId> ids;
  std::ranges::transform(program_.inputs, std::back_inserter(ids), &StageInput::value);
  return ids;
}

std::vector<ValueId> LoneNode::results() const {
  std::vector<ValueId> ids;
  if (program_.loss != kNoValue) {
    ids.push_back(program_.loss);
  }
  std::ranges::transform(program_.outputs, std::back_inserter(ids), &StageOutput::value);
  return ids;
}

LoneNode::Tensors LoneNode::run(const Tensors& inputs) const {
  StageResult result = interpreter_.run(inputs, state_, kMeasuringKey);
  Tensors all;
  if (program_.loss != kNoValue) {
    all.push_back(std::move(result.loss));
  }
  std::ranges::move(result.outputs, std::back_inserter(all));
  return all;
}

}  // namespace stagecraft
