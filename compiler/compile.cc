#include "stagecraft/compiler/compile.h"

#include <ATen/ops/flip.h>
#include <fmt/format.h>

#include <unordered_set>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/probe.h"
#include "stagecraft/compiler/thread_count.h"

namespace stagecraft {
namespace {

std::vector<BatchSlice> slices_of(const Batch& batch, int microbatches, std::string_view what) {
  std::vector<BatchSlice> slices;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [tensor, whole] = batch[i];
    if (!tensor.defined() || (!whole && tensor.dim() == 0)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} tensor {} cannot be split into microbatches: it has no dimension 0; pass "
                              "sc::replicated(t) to give it whole to every microbatch",
                              what,
                              i));
    }
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    if (!whole) {
      if (sizes[0] % microbatches != 0) {
        throw Error(Errc::CompileShape,
                    fmt::format("{} microbatches do not divide the batch: {} tensor {} has {} rows; choose a count that "
                                "divides it, or pad the batch",
                                microbatches,
                                what,
                                i,
                                sizes[0]));
      }
      sizes[0] /= microbatches;
    }
    slices.push_back({std::move(sizes), tensor.scalar_type(), whole});
  }
  return slices;
}

/// The same shape and the same set of values in another order: legal wherever the original was (token ids stay ids).
Tensors with_other_values(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& t : tensors) {
    result.push_back(t.dim() == 0 ? t : t.flatten().flip(0).view(t.sizes()));
  }
  return result;
}

/// A tensor registered under several names is one parameter, known by its first name.
std::vector<NamedTensor> without_aliases(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const NamedTensor& t : tensors) {
    if (t.tensor.defined() && seen.insert(t.tensor.unsafeGetTensorImpl()).second) {
      result.push_back(t);
    }
  }
  return result;
}

StageGraph stage_graph_of(const Partition& partition) {
  std::vector<std::pair<int, int>> edges;
  for (const StageProgram& stage : partition.stages) {
    for (const StageOutput& output : stage.outputs) {
      for (const StageId consumer : output.consumers) {
        edges.emplace_back(stage.id.value, consumer.value);
      }
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  StageGraph graph = StageGraph::from_edges(static_cast<int>(partition.stages.size()), edges);
  for (const StageProgram& stage : partition.stages) {
    const auto any = [](const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); };
    const bool owes = std::ranges::any_of(stage.inputs, [](const StageInput& i) { return i.owes_gradient; });
    graph.set_name(stage.id, stage.name);
    graph.set_needs_input_grad(stage.id, owes);
    graph.set_needs_weight_grad(stage.id, any(stage.trained));
  }
  return graph;
}

void check_trains(const CompiledProgram& compiled) {
  const auto trains = [](const StageProgram& stage) { return std::ranges::find(stage.trained, true) != stage.trained.end(); };
  if (std::ranges::none_of(compiled.partition.stages, trains)) {
    throw Error(Errc::CompileCapture,
                "the loss reaches no parameter that requires a gradient, so training would change nothing: compute the loss "
                "from outputs that hang on parameters (without detach or NoGradGuard), and leave requires_grad on in some");
  }
}

}  // namespace

namespace compile_detail {

void check_arity(std::size_t expected, std::size_t found) {
  if (expected != found) {
    throw Error(Errc::UsageArgument,
                fmt::format("the module's forward takes {} tensors, CompileOptions::inputs has {}; pass one per parameter, "
                            "in order",
                            expected,
                            found));
  }
}

}  // namespace compile_detail

Program compile_workload(const Workload& given, const CompileOptions& options) {
  if (options.microbatches < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("microbatches must be at least 1, found {}", options.microbatches));
  }
  if (!given.loss) {
    throw Error(Errc::UsageArgument, "CompileOptions::loss is missing; pass a function (output, label) -> scalar tensor");
  }
  const SingleThreaded alone;
  Workload workload = given;
  workload.parameters = without_aliases(given.parameters);
  workload.buffers = without_aliases(given.buffers);

  auto compiled = std::make_shared<CompiledProgram>();
  compiled->microbatches = options.microbatches;
  compiled->inputs = slices_of(options.inputs, options.microbatches, "input");
  compiled->labels = slices_of(options.labels, options.microbatches, "label");
  const auto inputs = split_batch(options.inputs, compiled->inputs, options.microbatches, "input");
  const auto labels = split_batch(options.labels, compiled->labels, options.microbatches, "label");

  compiled->graph = capture(workload, inputs[0], labels[0]);
  check_against_eager(workload, compiled->graph, with_other_values(inputs.back()), with_other_values(labels.back()));
  compiled->partition = partition(compiled->graph);
  measure_stages(compiled->graph, compiled->partition, inputs[0], labels[0]);
  compiled->stage_graph = stage_graph_of(compiled->partition);
  check_trains(*compiled);
  return Program(std::move(compiled));
}

}  // namespace stagecraft
