#include "stagecraft/compiler/probe.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_set>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/flip.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/interpreter.h"
#include "stagecraft/compiler/parameter_gradients.h"

namespace stagecraft {
namespace {

constexpr RandomKey kCheckKey{.seed = 1, .step = 1, .microbatch = 1};

/// Counts what this thread allocates and frees while it lives.
class MemoryMeter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    live_ += size;
    peak_ = std::max(peak_, live_);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  [[nodiscard]] std::int64_t live() const { return live_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }

 private:
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
};

StageState state_of(const Graph& graph, const StageProgram& program) {
  StageState state;
  for (const int p : program.parameters) {
    const at::Tensor& original = graph.parameters[static_cast<std::size_t>(p)].tensor;
    // A leaf of its own: hooks on the module's are called by the replay itself.
    state.parameters.push_back(original.detach().requires_grad_(original.requires_grad()));
  }
  for (const int b : program.buffers) {
    state.buffers.push_back(graph.buffers[static_cast<std::size_t>(b)].tensor.detach().clone());
  }
  return state;
}

Tensors inputs_of(const StageProgram& program,
                  const Tensors& inputs,
                  const Tensors& labels,
                  const std::map<ValueId, at::Tensor>& crossing) {
  Tensors result;
  for (const StageInput& input : program.inputs) {
    switch (input.source) {
      case StageInput::Source::Model:
        result.push_back(inputs[static_cast<std::size_t>(input.position)]);
        break;
      case StageInput::Source::Label:
        result.push_back(labels[static_cast<std::size_t>(input.position)]);
        break;
      case StageInput::Source::Stage:
        result.push_back(crossing.at(input.value));
        break;
    }
  }
  return result;
}

/// What the buckets and the optimizers can hold.
void check_trainable(const NamedTensor& parameter, const at::Tensor& gradient) {
  if (!gradient.defined()) {
    return;
  }
  if (gradient.layout() != at::kStrided) {
    throw Error(Errc::CompileCapture,
                fmt::format("the gradient of {} is sparse, which no optimizer here takes: make it "
                            "dense (for an Embedding, "
                            "leave .sparse(true) out)",
                            parameter.name));
  }
  if (!parameter.tensor.is_floating_point()) {
    throw Error(Errc::CompileCapture,
                fmt::format("the parameter {} is {}, which no optimizer here takes: hold its real "
                            "and imaginary part as two "
                            "parameters, or freeze it",
                            parameter.name,
                            at::toString(parameter.tensor.scalar_type())));
  }
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) {
    return a.defined() == b.defined();
  }
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
    return false;
  }
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// The nodes of autograd that a backward from `roots` would run.
std::unordered_set<torch::autograd::Node*> reachable(const Tensors& roots) {
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

/// One stage's run: leaves at its inputs, so that its graph ends where the stage does.
struct StageRun {
  Tensors leaves;
  StageState state;
  StageResult result;
};

StageRun run_stage(const Graph& graph,
                   StageProgram& program,
                   const Tensors& inputs,
                   const Tensors& labels,
                   const std::map<ValueId, at::Tensor>& crossing) {
  StageRun run;
  run.state = state_of(graph, program);
  for (const at::Tensor& input : inputs_of(program, inputs, labels, crossing)) {
    run.leaves.push_back(input.requires_grad() ? input.detach().requires_grad_() : input.detach());
  }
  const StageInterpreter interpreter(graph, program);
  const auto meter = std::make_shared<MemoryMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  const at::AutoGradMode grad(true);
  run.result = interpreter.run(run.leaves, run.state, kCheckKey);
  program.saved_bytes = std::max<std::int64_t>(0, meter->live());
  program.transient_bytes = std::max<std::int64_t>(0, meter->peak() - program.saved_bytes);
  return run;
}

/// The same shape and the same set of values: other values even where the batch is one microbatch
/// (token ids stay ids).
Tensors in_other_order(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& t : tensors) {
    result.push_back(t.dim() == 0 ? t : t.flatten().flip(0).view(t.sizes()));
  }
  return result;
}

/// What the module made of a second microbatch, and of which.
struct SecondRun {
  Tensors inputs, labels;
  EagerResult eager;
};

SecondRun run_second(const Workload& workload, const Tensors& inputs, const Tensors& labels) {
  try {
    SecondRun other{in_other_order(inputs), in_other_order(labels), {}};
    other.eager = run_eagerly(workload, other.inputs, other.labels, kCheckKey);
    return other;
  } catch (const Error&) {
    // Offsets have to begin with 0, and lengths to rise: what throws now is wrong with the module,
    // not with our order.
    return {inputs, labels, run_eagerly(workload, inputs, labels, kCheckKey)};
  }
}

}  // namespace

void check_against_eager(const Workload& workload,
                         const Graph& graph,
                         const Tensors& inputs,
                         const Tensors& labels) {
  const SecondRun second = run_second(workload, inputs, labels);
  const EagerResult& eager = second.eager;
  const StageProgram whole = whole_program(graph);
  const StageInterpreter interpreter(graph, whole);
  const at::AutoGradMode grad(true);
  Tensors arguments = second.inputs;
  arguments.insert(arguments.end(), second.labels.begin(), second.labels.end());
  const StageState state = state_of(graph, whole);
  const StageResult replay = interpreter.run(arguments, state, kCheckKey);
  const auto refuse = [](const std::string& what) {
    throw Error(Errc::CompileCapture,
                fmt::format("{} of a second microbatch differs between the module and the replay "
                            "of what was captured; the "
                            "module reads values where no operator shows it (data_ptr, accessor, "
                            "printing), or keeps state "
                            "outside of registered buffers: use operators, and register the state",
                            what));
  };
  for (std::size_t i = 0; i < eager.outputs.size(); ++i) {
    if (!same(eager.outputs[i], replay.outputs[i])) {
      refuse(fmt::format("output {}", i));
    }
  }
  if (!same(eager.loss, replay.loss)) {
    refuse("the loss");
  }
  const Tensors& wanted = eager.gradients;
  const Tensors found = parameter_gradients(replay.loss, state.parameters);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    check_trainable(graph.parameters[i], wanted[i]);
    if (!same(wanted[i], found[i])) {
      throw Error(
          Errc::CompileCapture,
          fmt::format("the gradient of {} on a second microbatch differs between the module and "
                      "the replay of what "
                      "was captured; the module changes gradients where no operator, custom "
                      "function or tensor "
                      "hook shows it: use these, and keep no state of your own between backwards",
                      graph.parameters[i].name));
    }
  }
}

void measure_stages(const Graph& graph,
                    Partition& partition,
                    const Tensors& inputs,
                    const Tensors& labels) {
  std::map<ValueId, at::Tensor> crossing;
  std::vector<StageRun> runs(partition.stages.size());
  for (const StageId s : partition.order) {
    StageProgram& program = partition.stages[s.index()];
    runs[s.index()] = run_stage(graph, program, inputs, labels, crossing);
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      crossing[program.outputs[i].value] = runs[s.index()].result.outputs[i];
    }
  }
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
    const auto nodes = reachable(roots);
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
      program.trained[i] = reached(run.state.parameters[i]);
    }
  }
}

}  // namespace stagecraft
