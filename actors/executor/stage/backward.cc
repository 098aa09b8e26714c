#include "stagecraft/actors/executor/stage/backward.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <ATen/ops/full_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

using torch::autograd::Edge;
using AutogradNode = torch::autograd::Node;
using Tensors = std::vector<at::Tensor>;

struct Roots {
  std::vector<Edge> edges;
  Tensors gradients;
};

Roots roots_of(const Saved& saved, const Tensors& output_gradients, double loss_scale) {
  Roots roots;
  const auto add = [&](const at::Tensor& output, const at::Tensor& gradient) {
    if (output.requires_grad()) {
      roots.edges.push_back(torch::autograd::impl::gradient_edge(output));
      roots.gradients.push_back(gradient);
    }
  };
  for (std::size_t i = 0; i < saved.outputs.size(); ++i) {
    if (output_gradients[i].defined()) {
      add(saved.outputs[i], output_gradients[i]);
    }
  }
  if (saved.loss.defined()) {
    // With a scale that exceeds the loss's type no gradient is finite, and the step is skipped.
    const bool fits =
        saved.loss.scalar_type() != at::kHalf || loss_scale <= std::numeric_limits<at::Half>::max();
    add(saved.loss,
        at::full_like(saved.loss, fits ? loss_scale : std::numeric_limits<double>::infinity()));
  }
  return roots;
}

std::vector<Edge> leaf_edges(const Saved& saved) {
  std::vector<Edge> edges;
  for (const at::Tensor& leaf : saved.leaves) {
    edges.push_back(torch::autograd::impl::gradient_edge(leaf));
  }
  return edges;
}

/// Runs autograd's engine. `so_far`: sums for the first of `wanted`, passed as extra roots: the
/// engine delivers the gradients of roots before it runs a node.
Tensors execute(Roots roots, bool keep_graph, const std::vector<Edge>& wanted, Tensors so_far) {
  if (roots.edges.empty() || wanted.empty()) {
    so_far.resize(wanted.size());
    return so_far;
  }
  for (std::size_t i = 0; i < so_far.size(); ++i) {
    if (so_far[i].defined()) {
      roots.edges.push_back(wanted[i]);
      roots.gradients.push_back(std::move(so_far[i]));
    }
  }
  return torch::autograd::Engine::get_default_engine().execute(roots.edges,
                                                               roots.gradients,
                                                               keep_graph,
                                                               /*create_graph=*/false,
                                                               /*accumulate_grad=*/false,
                                                               wanted);
}

/// Knows which nodes of a stage's graph lead to its inputs and which to its parameters.
class Reach {
 public:
  Reach(const std::vector<Edge>& roots,
        const std::vector<Edge>& inputs,
        const std::vector<Edge>& parameters) {
    for (const Edge& e : inputs) {
      to_input_.insert(e.function.get());
    }
    for (const Edge& e : parameters) {
      to_parameter_.insert(e.function.get());
    }
    for (const Edge& e : roots) {
      visit(e.function.get());
    }
  }

  [[nodiscard]] bool to_input(const AutogradNode* node) const { return to_input_.contains(node); }
  [[nodiscard]] bool to_parameter(const AutogradNode* node) const {
    return to_parameter_.contains(node);
  }
  /// Returns every node seen, children first: a node follows all nodes that get gradients from it.
  [[nodiscard]] const std::vector<AutogradNode*>& nodes() const { return postorder_; }

 private:
  /// Visits depth first with an explicit list: graphs are deeper than stacks.
  void visit(AutogradNode* root) {
    std::vector<std::pair<AutogradNode*, std::size_t>> work;
    const auto open = [&](AutogradNode* node) {
      if (node != nullptr && seen_.insert(node).second) {
        work.emplace_back(node, 0);
      }
    };
    open(root);
    while (!work.empty()) {
      auto& [node, next] = work.back();
      if (next < node->num_outputs()) {
        AutogradNode* child = node->next_edge(next++).function.get();
        open(child);
        continue;
      }
      for (const Edge& edge : node->next_edges()) {
        if (to_input_.contains(edge.function.get())) {
          to_input_.insert(node);
        }
        if (to_parameter_.contains(edge.function.get())) {
          to_parameter_.insert(node);
        }
      }
      postorder_.push_back(node);
      work.pop_back();
    }
  }

  std::unordered_set<const AutogradNode*> seen_, to_input_, to_parameter_;
  std::vector<AutogradNode*> postorder_;
};

/// Returns the nodes on the way to an input that also have an edge to a part that only parameters
/// need.
std::vector<AutogradNode*> frontier_of(const Reach& reach) {
  std::vector<AutogradNode*> frontier;
  for (AutogradNode* node : reach.nodes()) {
    if (!reach.to_input(node)) {
      continue;
    }
    for (const Edge& edge : node->next_edges()) {
      const AutogradNode* next = edge.function.get();
      if (next != nullptr && !reach.to_input(next) && reach.to_parameter(next)) {
        frontier.push_back(node);
        break;
      }
    }
  }
  return frontier;
}

/// Nodes that need their first gradient to make the others, or to make them with the same bits. The
/// kernel of a group norm for channels-last memory always writes the first; without it, bicubic
/// sampling rounds the gradient of the grid differently.
constexpr std::array<std::string_view, 2> kFirstBesideOthers{"GridSampler2DBackward0",
                                                             "NativeGroupNormBackward0"};

/// Takes an unwanted gradient and sends nothing on.
struct Dropped : AutogradNode {
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override {
    return torch::autograd::variable_list(1);
  }
};

/// Returns an edge that takes the gradients of `edge` and drops them. `wanted`: the target that the
/// engine asks for, so that it runs the node.
Edge dropping(const Edge& edge, const Edge& wanted) {
  const auto dropped = std::make_shared<Dropped>();
  const auto& expected = edge.function->input_metadata(edge.input_nr);
  dropped->add_input_metadata(expected.options(),
                              expected.shape_as_dim_vector(),
                              expected.is_tensor_subclass(),
                              expected.is_nested_tensor(),
                              expected.grad_dtype());
  dropped->add_next_edge(wanted);
  return {dropped, 0};
}

/// A node that must make its first gradient in a half that does not want it.
struct First {
  AutogradNode* node = nullptr;
  Edge edge;     ///< its own first
  Edge dropped;  ///< replaces it
};

/// `to_input`: in the half that leads to inputs; else in the half that leads to parameters alone.
std::vector<First> first_gradients(const Reach& reach,
                                   const std::vector<AutogradNode*>& frontier,
                                   bool to_input) {
  std::vector<First> firsts;
  for (AutogradNode* node : frontier) {
    if (std::ranges::find(kFirstBesideOthers, node->name()) == kFirstBesideOthers.end()) {
      continue;
    }
    const auto runs_in_half = [&](const Edge& edge) {
      const AutogradNode* next = edge.function.get();
      return next != nullptr &&
             (to_input ? reach.to_input(next) : reach.to_parameter(next) && !reach.to_input(next));
    };
    const Edge& first = node->next_edge(0);
    const auto& edges = node->next_edges();
    const auto wanted = std::ranges::find_if(edges, runs_in_half);
    if (first.is_valid() && !runs_in_half(first) && wanted != edges.end()) {
      firsts.push_back({node, first, dropping(first, *wanted)});
    }
  }
  return firsts;
}

void put_first(const std::vector<First>& firsts, Edge First::*edge) {
  for (const First& first : firsts) {
    first.node->next_edges()[0] = first.*edge;
  }
}

/// Removes the edges of the input path for good, so that the weight half runs only the weight
/// parts. Frees what only the input half needed, even if a value that the weight half reads still
/// holds the node that made it.
void cut_input_path(const Reach& reach, const std::vector<AutogradNode*>& frontier) {
  const std::unordered_set<const AutogradNode*> runs_again(frontier.begin(), frontier.end());
  std::vector<std::shared_ptr<AutogradNode>>
      released;  // freed together at the end, so that no destructor recurses
  for (AutogradNode* node : reach.nodes()) {
    if (!reach.to_input(node)) {
      continue;
    }
    if (!runs_again.contains(node)) {
      node->release_variables();
    }
    for (Edge& edge : node->next_edges()) {
      if (edge.function != nullptr && reach.to_input(edge.function.get())) {
        released.push_back(std::move(edge.function));
        edge = Edge();
      }
    }
  }
}

}  // namespace

Gradients backward(Saved& saved,
                   const Tensors& output_gradients,
                   const std::vector<Edge>& parameters,
                   const Gradients& so_far,
                   double loss_scale) {
  std::vector<Edge> wanted = leaf_edges(saved);
  const std::size_t inputs = wanted.size();
  wanted.insert(wanted.end(), parameters.begin(), parameters.end());
  Tensors sums = so_far.inputs;
  sums.resize(inputs);
  sums.insert(sums.end(), so_far.parameters.begin(), so_far.parameters.end());
  Tensors all =
      execute(roots_of(saved, output_gradients, loss_scale), false, wanted, std::move(sums));
  Gradients result;
  result.parameters.assign(all.begin() + static_cast<std::ptrdiff_t>(inputs), all.end());
  all.resize(inputs);
  result.inputs = std::move(all);
  return result;
}

Tensors backward_input(Saved& saved,
                       const Tensors& output_gradients,
                       const std::vector<Edge>& parameters,
                       const Tensors& so_far,
                       double loss_scale) {
  SC_CHECK(!saved.input_half_done, "the input half of a backward runs once");
  saved.input_half_done = true;
  Roots roots = roots_of(saved, output_gradients, loss_scale);
  const std::vector<Edge> inputs = leaf_edges(saved);
  if (inputs.empty()) {
    saved.frontier = std::move(roots.edges);
    saved.frontier_gradients = std::move(roots.gradients);
    return {};
  }
  const Reach reach(roots.edges, inputs, parameters);
  // A root that leads only to parameters belongs to the weight half alone.
  for (std::size_t i = 0; i < roots.edges.size(); ++i) {
    const AutogradNode* node = roots.edges[i].function.get();
    if (!reach.to_input(node) && reach.to_parameter(node)) {
      saved.frontier.push_back(roots.edges[i]);
      saved.frontier_gradients.push_back(roots.gradients[i]);
    }
  }
  std::vector<Edge> wanted = inputs;
  const std::vector<AutogradNode*> frontier = frontier_of(reach);
  for (AutogradNode* node : frontier) {
    for (std::uint32_t i = 0; i < node->num_inputs(); ++i) {
      wanted.emplace_back(node->getptr(), i);
    }
  }
  const std::vector<First> beside_inputs = first_gradients(reach, frontier, /*to_input=*/true);
  const std::vector<First> beside_parameters = first_gradients(reach, frontier, /*to_input=*/false);
  put_first(beside_inputs, &First::dropped);
  Tensors all = execute(std::move(roots), true, wanted, so_far);
  put_first(beside_inputs, &First::edge);
  for (std::size_t i = inputs.size(); i < wanted.size(); ++i) {
    if (all[i].defined()) {
      saved.frontier.push_back(wanted[i]);
      saved.frontier_gradients.push_back(all[i]);
    }
  }
  cut_input_path(reach, frontier);
  put_first(beside_parameters, &First::dropped);
  saved.outputs.clear();
  saved.loss.reset();
  saved.leaves.clear();
  all.resize(inputs.size());
  return all;
}

Tensors backward_weight(Saved& saved, const std::vector<Edge>& parameters, const Tensors& so_far) {
  SC_CHECK(saved.input_half_done, "the weight half of a backward runs after the input half");
  return execute(
      {std::move(saved.frontier), std::move(saved.frontier_gradients)}, false, parameters, so_far);
}

}  // namespace stagecraft
