#include "stagecraft/compiler/operator_costs.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/Storage.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/lone_node.h"
#include "stagecraft/compiler/memory_meter.h"
#include "stagecraft/compiler/operator_uses.h"
#include "stagecraft/compiler/thread_count.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

template <class Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// Differentiates the results towards the leaves, and returns how long that took.
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

/// Replays a graph node by node.
class Measuring {
 public:
  Measuring(const Graph& graph, const Tensors& inputs, const Tensors& labels, int repeats)
      : graph_(graph), repeats_(repeats), uses_(graph.values.size()) {
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
  }

  /// Measures a node and runs it for those behind. Requires: it is called for each, in order.
  OperatorCost measure(const Node& node) {
    OperatorCost cost;
    cost.name = operator_name(node);
    for (const ValueId result : node.results) {
      cost.output += result == kNoValue ? 0 : static_cast<double>(bytes_of(graph_.at(result)));
    }
    {
      const LoneNode first(graph_, node, /*all=*/false);
      measure_bytes(first, cost);
      measure_forward(first, cost);
    }
    const LoneNode whole(graph_, node, /*all=*/true);
    measure_backward(whole, cost);
    hand_on(node, whole);
    return cost;
  }

 private:
  [[nodiscard]] bool carries_gradient(ValueId id) const {
    const Value& value = graph_.at(id);
    return value.kind == ValueKind::Computed && value.requires_grad;
  }

  /// What the node reads, as leaves where a gradient flows to them.
  [[nodiscard]] Tensors arguments_of(const LoneNode& node) const {
    Tensors arguments;
    for (const ValueId id : node.inputs()) {
      arguments.push_back(values_.at(id).detach().requires_grad_(carries_gradient(id)));
    }
    return arguments;
  }

  /// Keeps OC-2. What a node's graph holds is seen when all else has let go: the node gets values
  /// made for it, and who has outlived that is still held.
  void measure_bytes(const LoneNode& node, OperatorCost& cost) {
    using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
    struct Watched {
      int alias_set;
      double bytes;
      Weak storage;
    };
    std::vector<Watched> watched;
    const auto watch = [&](ValueId id, const at::Tensor& tensor) {
      if (graph_.at(id).kind == ValueKind::Computed) {
        watched.push_back({graph_.at(id).alias_set,
                           static_cast<double>(tensor.storage().nbytes()),
                           tensor.storage().getWeakStorageImpl()});
      }
    };
    const Tensors leaves = arguments_of(node);
    const std::vector<ValueId> inputs = node.inputs();
    const auto meter = std::make_shared<MemoryMeter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    std::vector<std::shared_ptr<torch::autograd::Node>> graph;
    {
      Tensors arguments;
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        // Not the leaf: its accumulator would hold it. Of the batch not a copy either.
        const ValueId id = inputs[i];
        const bool computed = graph_.at(id).kind == ValueKind::Computed;
        arguments.push_back(computed ? leaves[i].clone() : leaves[i]);
        watch(id, arguments.back());
      }
      meter->reset_peak();
      const Tensors results = node.run(arguments);
      cost.transient = static_cast<double>(meter->peak() - meter->live());
      const std::vector<ValueId> ids = node.results();
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].defined() && results[i].requires_grad()) {
          graph.push_back(results[i].grad_fn());
          watch(ids[i], results[i]);
        }
      }
    }
    cost.kept = static_cast<double>(meter->live());
    std::set<c10::StorageImpl*> others, seen;  // others: parameters, constants and the batch
    for (const Tensors* tensors : {&node.parameters(), &graph_.constants, &leaves}) {
      for (const at::Tensor& tensor : *tensors) {
        if (tensor.has_storage()) {
          others.insert(tensor.storage().unsafeGetStorageImpl());
        }
      }
    }
    std::set<int> newly;
    for (const Watched& value : watched) {
      const auto held = value.storage.lock();
      if (!held || !seen.insert(held.get()).second) {
        continue;
      }
      if (others.contains(held.get())) {
        kept_.insert(value.alias_set);  // a view of what is counted nowhere
      } else if (kept_.contains(value.alias_set) || !newly.insert(value.alias_set).second) {
        cost.kept -= value.bytes;
      }
    }
    kept_.merge(newly);
    cost.kept = std::max(0.0, cost.kept);
  }

  void measure_forward(const LoneNode& node, OperatorCost& cost) const {
    std::vector<double> samples;
    for (int i = 0; i < repeats_; ++i) {
      const Tensors arguments = arguments_of(node);
      Tensors results;
      samples.push_back(seconds_of([&] { results = node.run(arguments); }));
    }
    cost.forward = median(std::move(samples));
  }

  /// Towards values alone, and towards all: what parameters take is the difference, so that the
  /// halves add up to the whole. Each time behind a forward of its own: keeps CF-3.
  void measure_backward(const LoneNode& node, OperatorCost& cost) const {
    std::vector<double> towards_values, towards_all;
    bool has_values = false;
    bool has_parameters = false;
    for (int i = 0; i < repeats_; ++i) {
      const auto backward = [&](bool with_parameters) {
        const Tensors arguments = arguments_of(node);
        Tensors leaves;
        const auto add = [&](const Tensors& tensors, bool& some) {
          for (const at::Tensor& tensor : tensors) {
            if (tensor.requires_grad()) {
              leaves.push_back(tensor);
              some = true;
            }
          }
        };
        add(arguments, has_values);
        if (with_parameters) {
          add(node.parameters(), has_parameters);
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

  void hand_on(const Node& node, const LoneNode& whole) {
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
  std::vector<int> uses_;  // by value: reads still to come
  std::unordered_map<ValueId, at::Tensor> values_;
  std::set<int> kept_;  // alias sets that are counted
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
  const auto measure = [&] {
    set_own_thread_count(how.threads);
    const at::AutoGradMode gradients(true);
    Measuring measuring(graph, inputs, labels, how.repeats);
    std::vector<OperatorCost> costs;
    for (const Node& node : graph.nodes) {
      OperatorCost cost = measuring.measure(node);
      cost.id = static_cast<int>(costs.size());
      costs.push_back(std::move(cost));
    }
    note_uses(graph, costs);
    return costs;
  };
  // The caller's thread may not be left with helpers of its own (thread_count.h).
  return std::async(std::launch::async, measure).get();
}

}  // namespace stagecraft
