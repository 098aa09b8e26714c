#include "stagecraft/compiler/compile.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/compiler/cut/cut_into_stages.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/libtorch/shares_memory.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/measure/operator_costs.h"
#include "stagecraft/compiler/module/registered.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/gradient_flow.h"
#include "stagecraft/compiler/program/recompute_stages.h"
#include "stagecraft/compiler/program/replay_check.h"
#include "stagecraft/compiler/program/stage_graph_of.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/compiler/shapes/shape_variants.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

/// Errors: UsageArgument for a parameter or buffer with which no worker could compute.
void check_state(const std::vector<NamedTensor>& tensors, std::string_view what) {
  for (const NamedTensor& t : tensors) {
    if (const std::string fault = why_unusable(t.tensor); !fault.empty()) {
      throw Error(
          Errc::UsageArgument,
          fmt::format(
              "the {} {} {}; a program computes with dense tensors on the CPU: make it one first",
              what,
              t.name,
              fault));
    }
  }
}

/// Refuses two handles of one memory: they would become two copies, trained separately.
/// Errors: UsageArgument, naming the two.
void refuse_shared_memory(const Workload& workload) {
  struct Registered {
    std::string_view kind;
    const NamedTensor* named;
    MemoryRange range;
  };
  std::vector<Registered> all;
  for (const NamedTensor& parameter : workload.parameters) {
    all.push_back({"parameter", &parameter, memory_range_of(parameter.tensor)});
  }
  for (const NamedTensor& buffer : workload.buffers) {
    all.push_back({"buffer", &buffer, memory_range_of(buffer.tensor)});
  }
  std::ranges::stable_sort(all, {}, [](const Registered& r) { return r.range.begin; });
  for (auto one = all.begin(); one != all.end(); ++one) {
    for (auto other = one + 1; other != all.end() && other->range.begin < one->range.end; ++other) {
      const at::Tensor& a = one->named->tensor;
      const at::Tensor& b = other->named->tensor;
      if (!a.is_same(b) && shares_memory(a, b)) {
        throw Error(
            Errc::UsageArgument,
            fmt::format(
                "the {} {} and the {} {} are two tensors that share memory, and would become two "
                "copies: to tie them, register the same tensor twice (register_parameter(\"tied\", "
                "a->weight)), or compute with one of them alone; else give each its own memory "
                "with "
                "clone()",
                one->kind,
                one->named->name,
                other->kind,
                other->named->name));
      }
    }
  }
}

/// Keeps PR-1. A copy shares no memory with the module, so neither can change the other.
void take_copies(std::vector<NamedTensor>& tensors) {
  for (NamedTensor& t : tensors) {
    t.tensor = t.tensor.detach().clone().requires_grad_(t.tensor.requires_grad());
  }
}

/// Returns the cost of every operator, for a balanced cut. Measures them if the caller gives none.
std::vector<OperatorCost> costs_for(const Cut& cut,
                                    const Graph& graph,
                                    const Tensors& inputs,
                                    const Tensors& labels) {
  const auto* balanced = std::get_if<Balanced>(&cut);
  if (balanced == nullptr || !balanced->costs.empty()) {
    return balanced == nullptr ? std::vector<OperatorCost>() : balanced->costs;
  }
  constexpr int kRepeats = 3;  // a median; a stage adds up many operators
  return measure_operators(graph, inputs, labels, {.repeats = kRepeats});
}

void check_trains(const CompiledProgram& compiled) {
  if (std::ranges::none_of(compiled.partition.stages, &StageProgram::trains)) {
    throw Error(Errc::CompileCapture,
                "the loss reaches no parameter that requires a gradient, so training would change "
                "nothing: compute the loss "
                "from outputs that hang on parameters (without detach or NoGradGuard), and leave "
                "requires_grad on in some");
  }
}

}  // namespace

namespace internal {

void check_inputs(const TakenNumbers& taken, std::size_t found) {
  if (found == 0) {
    throw Error(
        Errc::UsageArgument,
        "CompileOptions::inputs is empty; pass the tensors that the module's forward takes");
  }
  if (!taken.takes(found)) {
    throw Error(Errc::UsageArgument,
                fmt::format("the module's forward takes {}, CompileOptions::inputs has {}; pass "
                            "one per parameter, in "
                            "order{}",
                            to_string(taken),
                            found,
                            found > kMostArguments
                                ? ", or let forward take them all in one std::vector<at::Tensor>"
                                : ""));
  }
}

Tensors not_empty(Tensors outputs) {
  if (outputs.empty()) {
    throw Error(Errc::CompileCapture,
                "the module's forward returned no tensor; return what the loss is computed from");
  }
  return outputs;
}

Program compile_workload(const Workload& given,
                         const CompileOptions& options,
                         ModuleSource source) {
  if (options.microbatches < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("microbatches must be at least 1, found {}", options.microbatches));
  }
  if (options.shapes < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("shapes must be at least 1, that of the example batch, found {}",
                            options.shapes));
  }
  if (!given.loss) {
    throw Error(
        Errc::UsageArgument,
        "CompileOptions::loss is missing; pass a function (output, label) -> scalar tensor");
  }
  const SingleThreaded alone;
  const AutocastGuard without_cache;  // as in replays
  Workload workload = given;
  workload.parameters = without_aliases(given.parameters);
  workload.buffers = without_aliases(given.buffers);
  check_state(workload.parameters, "parameter");
  check_state(workload.buffers, "buffer");
  refuse_shared_memory(workload);

  auto compiled = std::make_shared<CompiledProgram>();
  compiled->microbatches = options.microbatches;
  compiled->input_names = names_of(options.inputs);
  compiled->modes = given.modes;
  compiled->state_names = state_names_of(given.parameters, given.buffers);
  compiled->submodules = given.submodules;
  compiled->autocast = AutocastGuard::now();
  compiled->inputs = slices_of(options.inputs, options.microbatches, "input");
  compiled->labels = slices_of(options.labels, options.microbatches, "label");
  const auto inputs = split_batch(options.inputs, compiled->inputs, options.microbatches, "input");
  const auto labels = split_batch(options.labels, compiled->labels, options.microbatches, "label");

  compiled->graph = capture(workload, inputs[0], labels[0]);
  check_against_eager(workload, compiled->graph, inputs.back(), labels.back());
  take_copies(compiled->graph.parameters);
  take_copies(compiled->graph.buffers);
  std::vector<OperatorCost> costs = costs_for(options.cut, compiled->graph, inputs[0], labels[0]);
  compiled->assignment = cut_into_stages(compiled->graph, options.cut, costs);
  compiled->marked = std::holds_alternative<AtMarkers>(options.cut);
  compiled->partition = partition(compiled->graph, compiled->assignment);
  compiled->cut = cut_report(compiled->graph, compiled->assignment, std::move(costs));
  std::vector<StageRun> runs =
      run_stages(compiled->graph, compiled->partition, inputs[0], labels[0]);
  find_gradient_flow(compiled->partition, runs);
  compiled->stage_graph = stage_graph_of(compiled->partition);
  check_trains(*compiled);
  compiled->recompute = options.recompute;
  recompute_stages(compiled->graph,
                   compiled->stage_graph,
                   options.recompute,
                   compiled->partition,
                   std::move(runs));
  if (!source.workload) {
    return Program(std::move(compiled));
  }
  // These are copies of the caller's batch (split_batch.h).
  auto example =
      std::make_shared<const ShapeVariants::Example>(ShapeVariants::Example{inputs, labels});
  auto variants =
      std::make_shared<ShapeVariants>(compiled, source, options.shapes, std::move(example));
  auto evaluations = std::make_shared<Evaluations>(compiled, std::move(source), options.shapes);
  return Program(std::move(compiled), std::move(variants), std::move(evaluations));
}

}  // namespace internal
}  // namespace stagecraft
