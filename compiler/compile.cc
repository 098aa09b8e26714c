#include "stagecraft/compiler/compile.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/compiler/cut/cut_into_stages.h"
#include "stagecraft/compiler/cut/driver_parts.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/measure/operator_costs.h"
#include "stagecraft/compiler/module/registered.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/gradient_flow.h"
#include "stagecraft/compiler/program/passes.h"
#include "stagecraft/compiler/program/recompute_stages.h"
#include "stagecraft/compiler/program/replay_check.h"
#include "stagecraft/compiler/program/stage_graph_of.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/compiler/shapes/shape_captures.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

/// Compilation is what the passes of compile work on. The first group is given, the second is the
/// result, the third is needed by some passes only.
struct Compilation {
  Compilation(const Workload& module, const CompileOptions& how) : options(how), workload(module) {}

  const CompileOptions& options;
  Workload workload;

  CompiledProgram program;

  std::vector<Tensors> inputs, labels;  ///< of the example batch, by microbatch
  std::vector<OperatorCost> costs;      ///< empty unless the cut is balanced
  std::vector<StageRun> runs;           ///< of the stages, on the first microbatch
};

void check_options(Compilation& c) {
  if (c.options.microbatches < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("microbatches must be at least 1, found {}", c.options.microbatches));
  }
  if (c.options.shapes < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("shapes must be at least 1, that of the example batch, found {}",
                            c.options.shapes));
  }
  c.program.keep = c.options.keep;
  std::vector<int>& kept = c.program.keep.outputs;
  std::ranges::sort(kept);
  if (std::ranges::adjacent_find(kept) != kept.end()) {
    throw Error(Errc::UsageArgument, "CompileOptions::keep names an output twice");
  }
  if (!c.workload.loss) {
    throw Error(
        Errc::UsageArgument,
        "CompileOptions::loss is missing; pass a function (output, label) -> scalar tensor");
  }
}

void take_module(Compilation& c) {
  c.program.modes = c.workload.modes;
  c.program.state_names = state_names_of(c.workload.parameters, c.workload.buffers);
  c.program.submodules = c.workload.submodules;
  c.program.autocast = AutocastGuard::now();
  c.workload.parameters = internal::without_aliases(c.workload.parameters);
  c.workload.buffers = internal::without_aliases(c.workload.buffers);
  internal::check_registered(c.workload.parameters, c.workload.buffers);
}

void split_example(Compilation& c) {
  const int microbatches = c.options.microbatches;
  c.program.microbatches = microbatches;
  c.program.input_names = names_of(c.options.inputs);
  c.program.inputs = slices_of(c.options.inputs, microbatches, "input");
  c.program.labels = slices_of(c.options.labels, microbatches, "label");
  c.inputs = split_batch(c.options.inputs, c.program.inputs, microbatches, "input");
  c.labels = split_batch(c.options.labels, c.program.labels, microbatches, "label");
}

void capture_module(Compilation& c) {
  c.program.graph = capture(c.workload, c.inputs[0], c.labels[0]);
}

void compare_with_eager(Compilation& c) {
  check_against_eager(c.workload, c.program.graph, c.inputs.back(), c.labels.back());
}

/// Keeps PR-1. A copy shares no memory with the module, so neither can change the other.
void copy_state(Compilation& c) {
  for (auto* tensors : {&c.program.graph.parameters, &c.program.graph.buffers}) {
    for (NamedTensor& t : *tensors) {
      t.tensor = t.tensor.detach().clone().requires_grad_(t.tensor.requires_grad());
    }
  }
}

/// Finds the cost of every operator for a balanced cut, unless the caller gives them.
void measure_costs(Compilation& c) {
  constexpr int kRepeats = 3;  // a median; a stage adds up many operators
  const auto* balanced = std::get_if<Balanced>(&c.options.cut);
  if (balanced == nullptr) {
    return;
  }
  c.costs =
      !balanced->costs.empty()
          ? balanced->costs
          : measure_operators(c.program.graph, c.inputs[0], c.labels[0], {.repeats = kRepeats});
}

void choose_stages(Compilation& c) {
  c.program.assignment =
      driver_parts(c.program.graph, cut_into_stages(c.program.graph, c.options.cut, c.costs));
  c.program.marked = std::holds_alternative<AtMarkers>(c.options.cut);
  c.program.cut = cut_report(c.program.graph, c.program.assignment, c.costs);
}

void make_stages(Compilation& c) {
  c.program.partition = partition_keeping(c.program.graph, c.program.assignment, c.program.keep);
}

void run_each_stage(Compilation& c) {
  c.runs = run_stages(c.program.graph, c.program.partition, c.inputs[0], c.labels[0]);
}

void follow_gradients(Compilation& c) {
  find_gradient_flow(c.program.partition, c.runs);
  c.program.stage_graph = stage_graph_of(c.program.partition);
  if (const StageParts& parts = c.program.assignment.parts; !parts.empty()) {
    c.program.whole_stages = whole_stages(c.program.stage_graph, parts);
  }
  if (std::ranges::none_of(c.program.partition.stages, &StageProgram::trains)) {
    throw Error(Errc::CompileCapture,
                "the loss reaches no parameter that requires a gradient, so training would change "
                "nothing: compute the loss from outputs that depend on parameters (without detach "
                "or NoGradGuard), and leave requires_grad on in some of them");
  }
}

void divide_for_recompute(Compilation& c) {
  c.program.recompute = c.options.recompute;
  recompute_stages(c.program.graph,
                   c.program.stage_graph,
                   c.options.recompute,
                   c.program.partition,
                   std::move(c.runs));
}

/// Lists what compile does, in order. The arrows of docs/architecture.md are "capture" and
/// "partition".
constexpr NamedPass<Compilation> kPasses[] = {
    {"check options", check_options},            // options, module -> the same
    {"take module", take_module},                // module -> parameters and buffers, each once
    {"split batch", split_example},              // example batch -> microbatches
    {"capture", capture_module},                 // module, first microbatch -> Graph
    {"compare with eager", compare_with_eager},  // module, last microbatch, Graph -> the same
    {"copy state", copy_state},                  // Graph -> Graph with tensors of its own
    {"measure operators", measure_costs},        // Graph -> OperatorCosts, for a balanced cut
    {"cut", choose_stages},                      // Graph, Cut, OperatorCosts -> StageAssignment
    {"partition", make_stages},                  // Graph, StageAssignment -> stage programs
    {"run stages", run_each_stage},              // stage programs -> the bytes that they keep
    {"gradient flow", follow_gradients},         // runs -> who owes gradients; StageGraph
    {"recompute", divide_for_recompute},         // stage programs -> stage programs in chunks
};

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
                            "one per parameter, in order{}",
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
                "the module's forward returned no tensor; return those that the loss is computed "
                "from");
  }
  return outputs;
}

Program compile_workload(const Workload& workload,
                         const CompileOptions& options,
                         ModuleSource source) {
  const SingleThreaded alone;
  const AutocastGuard without_cache;  // as in replays
  Compilation compilation(workload, options);
  std::vector<PassTime> times = run_passes(kPasses, compilation);
  auto compiled = std::make_shared<CompiledProgram>(std::move(compilation.program));
  compiled->passes = std::move(times);
  if (!source.workload) {
    return Program(std::move(compiled));
  }
  // The microbatches are copies of the caller's batch (split_batch.h).
  auto example = std::make_shared<const ShapeCaptures::Example>(
      ShapeCaptures::Example{std::move(compilation.inputs), std::move(compilation.labels)});
  auto shape_captures =
      std::make_shared<ShapeCaptures>(compiled, source, options.shapes, std::move(example));
  auto evaluations = std::make_shared<Evaluations>(compiled, std::move(source), options.shapes);
  return Program(std::move(compiled), std::move(shape_captures), std::move(evaluations));
}

}  // namespace internal
}  // namespace stagecraft
