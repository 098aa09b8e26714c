#include "stagecraft/compiler/program/gradient_flow.h"

#include <algorithm>
#include <unordered_set>

#include <torch/csrc/autograd/function.h>

#include "stagecraft/compiler/program/ties.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Returns the nodes of autograd that a backward from `roots` would run.
std::unordered_set<torch::autograd::Node*> reachable_stages(const Tensors& roots) {
  std::unordered_set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> work;
  const auto visit = [&](torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) {
      work.push_back(node);
    }
  };
  for (const at::Tensor& root : roots) {
    visit(torch::autograd::impl::gradient_edge(root).function.get());
  }
  while (!work.empty()) {
    torch::autograd::Node* node = work.back();
    work.pop_back();
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      visit(edge.function.get());
    }
  }
  return seen;
}

}  // namespace

void find_gradient_flow(Partition& partition, const std::vector<StageRun>& runs) {
  for (auto s = partition.order.rbegin(); s != partition.order.rend(); ++s) {
    StageProgram& program = partition.stages[s->index()];
    const StageRun& run = runs[s->index()];
    Tensors roots;
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const std::vector<bool>& from = program.outputs[i].gradient_from;
      if (std::find(from.begin(), from.end(), true) != from.end()) {
        roots.push_back(run.result.outputs[i]);
      }
    }
    if (run.result.loss.defined() && run.result.loss.requires_grad()) {
      roots.push_back(run.result.loss);
    }
    const auto nodes = reachable_stages(roots);
    const auto reached = [&](const at::Tensor& leaf) {
      return leaf.requires_grad() &&
             nodes.contains(torch::autograd::impl::gradient_edge(leaf).function.get());
    };
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      StageInput& input = program.inputs[i];
      input.owes_gradient = input.source == StageInput::Source::Stage && reached(run.leaves[i]);
      if (!input.owes_gradient) {
        continue;
      }
      for (StageOutput& output : partition.stages[input.from.index()].outputs) {
        if (output.value == input.value) {
          const auto consumer = std::find(output.consumers.begin(), output.consumers.end(), *s);
          output.gradient_from[static_cast<std::size_t>(consumer - output.consumers.begin())] =
              true;
        }
      }
    }
    for (std::size_t i = 0; i < program.parameters.size(); ++i) {
      program.parameters[i].trained = reached(run.state.parameters[i]);
    }
  }
  train_together(partition);
}

}  // namespace stagecraft
