#include "stagecraft/compiler/measure/operator_costs.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/median.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/measure/kept_bytes.h"
#include "stagecraft/compiler/measure/operator_uses.h"
#include "stagecraft/compiler/measure/single_operator.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

template <class Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Differentiates the results toward the leaves, and returns how long that took.
double backward_seconds(const Tensors& results, const Tensors& leaves) {
  torch::autograd::edge_list roots, ends;
  Tensors gradients;
  for (const at::Tensor& result : results) {
    if (result.defined() && result.requires_grad()) {
      roots.push_back(torch::autograd::impl::gradient_edge(result));
      gradients.push_back(at::ones_like(result));
    }
  }
  for (const at::Tensor& leaf : leaves) {
    ends.push_back(torch::autograd::impl::gradient_edge(leaf));
  }
  if (roots.empty() || ends.empty()) {
    return 0;
  }
  return seconds_of([&] {
    (void)torch::autograd::Engine::get_default_engine().execute(roots,
                                                                gradients,
                                                                /*keep_graph=*/false,
                                                                /*create_graph=*/false,
                                                                /*accumulate_grad=*/false,
                                                                ends);
  });
}

/// Measuring replays a graph node by node.
class Measuring {
 public:
  Measuring(const Graph& graph, const Tensors& inputs, const Tensors& labels, int repeats)
      : graph_(graph), repeats_(repeats), uses_(graph.values.size()), bytes_(graph) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      values_[graph.inputs[i]] = inputs[i];
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      values_[graph.labels[i]] = labels[i];
    }
    for (const Node& node : graph.nodes) {
      for (const ValueId id : reads_of(node)) {
        if (id != kNoValue) {
          ++uses_[id.index()];
        }
      }
    }
    for (const Node& node : graph.nodes) {
      const std::vector<ValueId> reads = reads_of(node);
      if (std::ranges::any_of(reads, [&](ValueId id) { return id != kNoValue && of_batch(id); })) {
        of_batch_.insert(node.results.begin(), node.results.end());
      }
    }
  }

  /// Measures the node after those in `costs`, and runs it for its readers.
  void measure_next(std::vector<OperatorCost>& costs) {
    const std::size_t number = costs.size();
    const Node& node = graph_.nodes[number];
    costs.push_back(measure(number));
    costs.back().id = static_cast<int>(number);
    hand_on(node);
    if (costs.size() == graph_.nodes.size()) {
      for (std::size_t n = 0; n < costs.size(); ++n) {
        costs[n].kept += bytes_.kept_by_others(n);
      }
    }
  }

 private:
  OperatorCost measure(std::size_t number) {
    const Node& node = graph_.nodes[number];
    OperatorCost cost;
    cost.name = operator_name(node);
    for (const ValueId result : node.results) {
      cost.output += result == kNoValue ? 0 : static_cast<double>(bytes_of(graph_.at(result)));
    }
    {
      const SingleOperator first(graph_, node, /*all=*/false);
      const KeptBytes::Bytes bytes = bytes_.measure(first, arguments_of(first), number);
      cost.kept = bytes.kept;
      cost.transient = bytes.transient;
      measure_forward(first, cost);
    }
    measure_backward(SingleOperator(graph_, node, /*all=*/true), cost);
    return cost;
  }

  /// Returns false for values computed from parameters alone, such as a weight's transpose:
  /// gradients toward them count as a weight's.
  [[nodiscard]] bool of_batch(ValueId id) const {
    const ValueKind kind = graph_.at(id).kind;
    return kind == ValueKind::Input || kind == ValueKind::Label || of_batch_.contains(id);
  }

  [[nodiscard]] bool carries_gradient(ValueId id) const {
    const Value& value = graph_.at(id);
    return value.kind == ValueKind::Computed && value.requires_grad;
  }

  /// Returns the values that the node reads, as leaves if a gradient flows to them.
  [[nodiscard]] Tensors arguments_of(const SingleOperator& node) const {
    Tensors arguments;
    for (const ValueId id : node.inputs()) {
      arguments.push_back(values_.at(id).detach().requires_grad_(carries_gradient(id)));
    }
    return arguments;
  }

  void measure_forward(const SingleOperator& node, OperatorCost& cost) const {
    std::vector<double> samples;
    for (int i = 0; i < repeats_; ++i) {
      const Tensors arguments = arguments_of(node);
      Tensors results;
      samples.push_back(seconds_of([&] { results = node.run(arguments); }));
    }
    cost.forward = median(std::move(samples));
  }

  /// Measures the backward toward values alone, and toward all. The difference counts for
  /// parameters, so that the halves add up to the whole. Each backward follows a forward of its
  /// own: keeps CF-3.
  void measure_backward(const SingleOperator& node, OperatorCost& cost) const {
    std::vector<double> towards_values, towards_all;
    const std::vector<ValueId> inputs = node.inputs();
    bool has_values = false;
    bool has_parameters = false;
    for (int i = 0; i < repeats_; ++i) {
      const auto backward = [&](bool with_parameters) {
        const Tensors arguments = arguments_of(node);
        Tensors leaves;
        const auto add = [&](const at::Tensor& tensor, bool& some) {
          if (tensor.requires_grad()) {
            leaves.push_back(tensor);
            some = true;
          }
        };
        for (std::size_t a = 0; a < arguments.size(); ++a) {
          const bool value = of_batch(inputs[a]);
          if (value || with_parameters) {
            add(arguments[a], value ? has_values : has_parameters);
          }
        }
        for (const at::Tensor& parameter : with_parameters ? node.parameters() : Tensors()) {
          add(parameter, has_parameters);
        }
        return leaves.empty() ? 0 : backward_seconds(node.run(arguments), leaves);
      };
      towards_all.push_back(backward(true));
      if (has_values && has_parameters) {
        towards_values.push_back(backward(false));
      }
    }
    const double all = median(std::move(towards_all));
    if (has_values && has_parameters) {
      cost.backward_input = std::min(all, median(std::move(towards_values)));
    } else {
      cost.backward_input = has_values ? all : 0;
    }
    cost.backward_weight = all - cost.backward_input;
  }

  void hand_on(const Node& node) {
    const SingleOperator whole(graph_, node, /*all=*/true);
    const Tensors results = whole.run(arguments_of(whole));
    const std::vector<ValueId> ids = whole.results();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      values_[ids[i]] = results[i].defined() ? results[i].detach() : results[i];
    }
    for (const ValueId id : reads_of(node)) {
      if (id != kNoValue && --uses_[id.index()] == 0) {
        values_.erase(id);
      }
    }
  }

  const Graph& graph_;
  const int repeats_;
  std::vector<int> uses_;  // by value: the number of reads still to come
  std::unordered_map<ValueId, at::Tensor> values_;
  KeptBytes bytes_;
  std::set<ValueId> of_batch_;  // values computed from the batch
};

}  // namespace

std::vector<OperatorCost> measure_operators(const Program& program,
                                            const Batch& inputs,
                                            const Batch& labels,
                                            const OperatorMeasuring& how) {
  const CompiledProgram& compiled = program.compiled();
  std::vector<OperatorCost> costs = measure_operators(
      compiled.graph,
      split_batch(inputs, compiled.inputs, compiled.microbatches, "input").front(),
      split_batch(labels, compiled.labels, compiled.microbatches, "label").front(),
      how);
  for (std::size_t n = 0; n < costs.size(); ++n) {
    costs[n].stage = StageId(compiled.assignment.stage_of[n]);
  }
  return costs;
}

std::vector<OperatorCost> measure_operators(const Graph& graph,
                                            const Tensors& inputs,
                                            const Tensors& labels,
                                            const OperatorMeasuring& how) {
  if (how.repeats < 1 || how.threads < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("operators are measured at least once and on at least one thread; "
                            "found {} repeats and {} threads",
                            how.repeats,
                            how.threads));
  }
  return on_own_thread(how.threads, [&] {
    const at::AutoGradMode gradients(true);
    Measuring measuring(graph, inputs, labels, how.repeats);
    std::vector<OperatorCost> costs;
    while (costs.size() < graph.nodes.size()) {
      measuring.measure_next(costs);
    }
    note_uses(graph, costs);
    return costs;
  });
}

}  // namespace stagecraft
