#include "stagecraft/compiler/shapes/evaluation_stages.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/cut/copy_written.h"
#include "stagecraft/compiler/cut/cut_like.h"
#include "stagecraft/compiler/shapes/other_shape.h"

namespace stagecraft {
namespace {

[[noreturn]] void refuse_evaluation(const std::string& what) {
  throw Error(
      Errc::CompilePartition,
      fmt::format("in evaluation mode the module does not fit the stages of the program: "
                  "{}; let each stage compute with the same part of the module in both modes",
                  what));
}

/// Errors: CompilePartition.
StageAssignment assigned(Graph& evaluation, const CompiledProgram& model) {
  LikeCut cut = cut_like(evaluation, model, UnusedTensors::IsAnywhere);
  if (cut.misfit.empty()) {
    return std::move(cut.assignment);
  }
  LikeCut copying = cut_like(evaluation, model, UnusedTensors::IsAnywhere, WrittenMemory::IsCopied);
  if (!copying.misfit.empty()) {
    refuse_evaluation(cut.misfit);
  }
  copy_written(evaluation, copying.assignment);
  return std::move(copying.assignment);
}

/// Moves the parameters or buffers in `state` whose positions are not in `kept` to the constants of
/// the stage.
template <class T>
void make_constants(StageProgram& stage,
                    std::vector<T>& state,
                    const std::set<int>& kept,
                    const std::vector<NamedTensor>& tensors) {
  const auto goes = [&](const T& one) { return !kept.contains(one.position); };
  for (const T& one : state) {
    if (goes(one)) {
      const at::Tensor& tensor = tensors[static_cast<std::size_t>(one.position)].tensor;
      stage.constants.push_back({one.value, tensor.detach()});
    }
  }
  std::erase_if(state, goes);
}

}  // namespace

Partition evaluation_stages(Graph& evaluation, const CompiledProgram& model) {
  const bool calls_driver = std::ranges::any_of(evaluation.nodes, is_driver_code);
  if (calls_driver && model.assignment.parts.empty()) {
    refuse_evaluation("it has code on the driver (sc::on_driver), and the training has none");
  }
  const StageAssignment assignment = assigned(evaluation, model);
  Partition found = partition(evaluation, assignment, results_of(evaluation));
  const std::set<int> parameters = positions_in(model.partition, &StageProgram::parameters);
  const std::set<int> buffers = positions_in(model.partition, &StageProgram::buffers);
  for (StageProgram& stage : found.stages) {
    make_constants(stage, stage.parameters, parameters, evaluation.parameters);
    make_constants(stage, stage.buffers, buffers, evaluation.buffers);
    const std::string misfit =
        misfit_of_evaluation(model.partition.stages[stage.id.index()], stage);
    if (!misfit.empty()) {
      refuse_evaluation(fmt::format("stage \"{}\" {}", stage.name, misfit));
    }
  }
  return found;
}

}  // namespace stagecraft
