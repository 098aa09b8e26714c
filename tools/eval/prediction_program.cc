#include "stagecraft/tools/eval/prediction_program.h"

#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::tools {
namespace {

/// Errors: UsageFile.
void require_predictions(const std::string& path, const Graph& graph) {
  if (graph.outputs.size() == 1 && graph.at(graph.outputs[0]).sizes.empty()) {
    throw Error(Errc::UsageFile,
                fmt::format("{}: expected a model that returns predictions, and its only output is "
                            "a loss, one number for a microbatch: `stagecraft eval` prints it; for "
                            "predictions export a forward that returns them",
                            path));
  }
}

}  // namespace

Program prediction_program(ModelFile model, const Batch& microbatch, Precision precision) {
  const at::Tensor weight = at::zeros({1}).requires_grad_(true);
  model.workload.parameters.push_back({"weight of no prediction", weight});
  // It depends on all outputs, so that the stage keeps the operators that make them.
  const auto loss = [weight](const std::vector<at::Tensor>& outputs,
                             const std::vector<at::Tensor>& /*labels*/) {
    at::Tensor sum = weight.sum();
    for (const at::Tensor& output : outputs) {
      if (output.is_complex()) {
        sum = sum + at::real(output.detach()).mean();
      } else if (output.is_floating_point()) {
        sum = sum + output.detach().mean();
      }
    }
    return sum;
  };
  const AutocastGuard autocast;
  AutocastGuard::set(autocast_of(precision));
  Program program = compile(model, {.inputs = microbatch, .loss = loss, .cut = At{}});
  require_predictions(model.path, program.compiled().graph);
  return program;
}

}  // namespace stagecraft::tools
