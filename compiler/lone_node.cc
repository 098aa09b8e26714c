#include "stagecraft/compiler/lone_node.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "stagecraft/compiler/probe.h"
#include "stagecraft/compiler/stage_program_of.h"

namespace stagecraft {
namespace {

/// A program of these nodes, that hands on these values.
StageProgram program_of(const Graph& graph,
                        std::vector<Node> nodes,
                        const std::vector<ValueId>& results,
                        bool fuse) {
  StageProgram program{.id = StageId(0), .name = operator_name(nodes.front())};
  std::set<ValueId> made, inputs;
  for (const Node& node : nodes) {
    for (const ValueId id : reads_of(node)) {
      const bool given =
          id != kNoValue && !made.contains(id) &&
          (graph.at(id).kind == ValueKind::Input || graph.at(id).kind == ValueKind::Label ||
           graph.at(id).kind == ValueKind::Computed);
      if (given && inputs.insert(id).second) {
        program.inputs.push_back({StageInput::Source::Stage, 0, id});
      }
    }
    made.insert(node.results.begin(), node.results.end());
  }
  for (std::size_t i = 1; i < results.size(); ++i) {
    program.outputs.push_back({results[i], {}, {}});
  }
  complete_from(graph, std::move(nodes), program);
  program.loss = results.empty() ? kNoValue : results.front();
  program.fuse = fuse;
  return program;
}

std::vector<ValueId> results_of(const Node& node, bool all) {
  std::vector<ValueId> results;
  for (const ValueId result : node.results) {
    if (result != kNoValue && (all || results.empty())) {
      results.push_back(result);
    }
  }
  return results;
}

std::vector<Node> nodes_of(const Graph& graph, const Region& region) {
  std::vector<Node> nodes;
  for (const std::size_t node : region.nodes) {
    nodes.push_back(graph.nodes[node]);
  }
  return nodes;
}

}  // namespace

LoneNode::LoneNode(const Graph& graph, const Node& node, bool all)
    : LoneNode(graph, program_of(graph, {node}, results_of(node, all), /*fuse=*/false)) {}

LoneNode::LoneNode(const Graph& graph, const Region& region)
    : LoneNode(graph, program_of(graph, nodes_of(graph, region), region.outputs, /*fuse=*/true)) {}

LoneNode::LoneNode(const Graph& graph, StageProgram program)
    : program_(std::move(program)),
      interpreter_(program_, program_.chunks.front()),
      state_(probe_state(graph, program_)) {}

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
  ChunkResult result = interpreter_.run(inputs, state_, kProbeKey);
  Tensors all;
  if (program_.loss != kNoValue) {
    all.push_back(std::move(result.loss));
  }
  std::ranges::move(result.outputs, std::back_inserter(all));
  return all;
}

}  // namespace stagecraft
