#include "stagecraft/compiler/shapes/evaluations.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/clone.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/module/registered.h"
#include "stagecraft/compiler/program/replay_check.h"
#include "stagecraft/compiler/program/same_module.h"
#include "stagecraft/compiler/program/stage_graph_of.h"
#include "stagecraft/compiler/shapes/evaluation_stages.h"
#include "stagecraft/compiler/shapes/output_rows.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/compiler/shapes/shape_captures.h"

namespace stagecraft {
namespace {

// Each new list of metrics is one more program on every rank. If callers make new metrics for every
// evaluation, the oldest program is forgotten.
constexpr std::size_t kMostEvaluations = 8;

/// Copies outputs that are inputs, parameters or buffers themselves, so that they become values
/// that a stage can send.
Tensors made_here(Tensors outputs,
                  const Tensors& inputs,
                  const std::vector<NamedTensor>& parameters,
                  const std::vector<NamedTensor>& buffers) {
  const auto is_it = [](const at::Tensor& output) {
    return [&output](const NamedTensor& named) { return output.is_same(named.tensor); };
  };
  for (at::Tensor& output : outputs) {
    const auto given = [&](const at::Tensor& input) { return output.is_same(input); };
    if (std::ranges::any_of(inputs, given) || std::ranges::any_of(parameters, is_it(output)) ||
        std::ranges::any_of(buffers, is_it(output))) {
      output = output.clone();
    }
  }
  return outputs;
}

/// Returns the metric's function, which adds the metric's name to errors of capture.
internal::LossFunction named(const Metric& metric) {
  return
      [name = metric.name(), call = metric.call()](const Tensors& outputs, const Tensors& labels) {
        try {
          return call(outputs, labels);
        } catch (const Error& error) {
          throw Error(error.code(),
                      fmt::format("the metric \"{}\": {}; compute a metric that operators cannot "
                                  "express from the results of predict()",
                                  name,
                                  error.message()))
              .with(error.context());
        }
      };
}

/// Errors: CompileCapture for an output or a metric that no stage makes.
void require_made(const Graph& graph, const std::vector<Metric>& metrics) {
  const std::vector<ValueId>& results = results_of(graph);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (graph.at(results[i]).kind != ValueKind::Computed) {
      throw Error(Errc::CompileCapture,
                  fmt::format("{} is the same for all inputs and parameters, so no stage makes it: "
                              "leave it out",
                              graph.loss == kNoValue
                                  ? fmt::format("output {} of the module", i)
                                  : fmt::format("the metric \"{}\"", metrics[i].name())));
    }
  }
}

/// Returns the workload of the module's evaluation.
Workload evaluated(Workload workload, bool predicts, const std::vector<Metric>& metrics) {
  workload.trains = false;
  workload.forward = [forward = std::move(workload.forward),
                      parameters = workload.parameters,
                      buffers = workload.buffers](const Tensors& inputs) {
    return made_here(forward(inputs), inputs, parameters, buffers);
  };
  if (predicts) {
    workload.loss = nullptr;
  }
  for (const Metric& metric : metrics) {
    workload.metrics.push_back(named(metric));
  }
  return workload;
}

}  // namespace

Evaluations::Evaluations(std::shared_ptr<const CompiledProgram> model,
                         ModuleSource source,
                         int shapes)
    : model_(std::move(model)), source_(std::move(source)), shapes_(shapes) {}

Program Evaluations::prediction(const Batch& inputs) {
  return of(true, {}, inputs, {});
}

Program Evaluations::measurement(const std::vector<Metric>& metrics,
                                 const Batch& inputs,
                                 const Batch& labels) {
  return of(false, metrics, inputs, labels);
}

Program Evaluations::of(bool predicts,
                        const std::vector<Metric>& metrics,
                        const Batch& inputs,
                        const Batch& labels) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find_if(known_, [&](const Known& known) {
    return known.predicts == predicts && known.metrics == metrics;
  });
  if (found != known_.end()) {
    return found->program;
  }
  const ModuleSource source{.workload =
                                [from = source_, predicts, metrics] {
                                  return evaluated(from.workload(), predicts, metrics);
                                },
                            .one_shape = source_.one_shape};
  Program program = compiled(source, metrics, inputs, labels);
  if (known_.size() == kMostEvaluations) {
    known_.erase(known_.begin());
  }
  known_.push_back({predicts, metrics, program});
  return program;
}

Program Evaluations::compiled(const ModuleSource& source,
                              const std::vector<Metric>& metrics,
                              const Batch& inputs,
                              const Batch& labels) const {
  const FirstPart first = first_part(*model_, inputs, labels);
  const SingleThreaded alone;
  const c10::InferenceMode no_inference(false);
  const AutocastGuard autocast;
  AutocastGuard::set(model_->autocast);
  Workload workload = source.workload();
  workload.parameters = internal::without_aliases(workload.parameters);
  workload.buffers = internal::without_aliases(workload.buffers);
  require_same_module(*model_, workload);
  auto made = std::make_shared<CompiledProgram>();
  made->evaluates = model_;
  made->microbatches = model_->microbatches;
  made->input_names = model_->input_names;
  made->modes.assign(model_->modes.size(), false);
  made->autocast = model_->autocast;
  made->marked = model_->marked;
  made->inputs = first.input_slices;
  made->labels = first.label_slices;
  const InModes evaluating(workload, made->modes);
  made->graph = capture(workload, first.inputs, first.labels);
  check_against_eager(workload, made->graph, first.inputs, first.labels);
  require_made(made->graph, metrics);
  if (!workload.loss && metrics.empty()) {
    made->row_dimensions = row_dimensions(workload, made->graph, first);
  }
  made->partition = evaluation_stages(made->graph, *model_);
  made->stage_graph = stage_graph_of(made->partition);
  made->assignment = model_->assignment;
  log(Level::Info, "captured in evaluation mode", {{"operators", made->graph.nodes.size()}});
  auto shape_captures = std::make_shared<ShapeCaptures>(made, source, shapes_);
  return Program(std::move(made), std::move(shape_captures));
}

}  // namespace stagecraft
