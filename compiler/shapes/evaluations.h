/// Evaluations holds programs of a program's module in evaluation mode (dropout off, running
/// statistics used). They consist of forwards that run on the same weights and buffers.
///
/// Held by the Program and all copies of it; asked by the trainer, for predict and evaluate. The
/// module is captured on the caller's thread, when it is asked for first, and put back into its
/// modes.
/// EV-1: an evaluation has the program's stages, by their names, each on the parameters and buffers
///       that the stage has, and no edge that the program's order of stages does not allow: so
///       whatever schedule trains the program runs it. A stage may have nothing to do.
/// EV-2: it is captured once for a row of metrics, and once more for every shape of microbatches.
/// EV-3: parameters and buffers that no stage of the program has are constants of the stages that
///       evaluate with them, told by the kind of their values; whoever runs the evaluation gives
///       them its own.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/metric.h"
#include "stagecraft/compiler/module/workload.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {

class Evaluations {
 public:
  /// `model`: the program. `shapes`: the most shapes that each evaluation may have.
  Evaluations(std::shared_ptr<const CompiledProgram> model, ModuleSource source, int shapes);

  /// Returns the program that sends the module's outputs to the driver and reads no labels.
  /// Errors: CompileShape for a module that no longer exists; UsageArgument if it has changed, or
  ///         for inputs that are not like the program's; CompileCapture, CompilePartition.
  /// Cost: for a new one, about ten forwards of a microbatch.
  [[nodiscard]] Program prediction(const Batch& inputs);

  /// Returns the program that computes the loss and sends the metrics to the driver. Errors, cost:
  /// likewise.
  [[nodiscard]] Program measurement(const std::vector<Metric>& metrics,
                                    const Batch& inputs,
                                    const Batch& labels);

 private:
  struct Known {
    bool predicts = false;
    std::vector<Metric> metrics;
    Program program;
  };

  [[nodiscard]] Program of(bool predicts,
                           const std::vector<Metric>& metrics,
                           const Batch& inputs,
                           const Batch& labels);
  [[nodiscard]] Program compiled(const ModuleSource& source,
                                 const std::vector<Metric>& metrics,
                                 const Batch& inputs,
                                 const Batch& labels) const;

  const std::shared_ptr<const CompiledProgram> model_;
  const ModuleSource source_;
  const int shapes_;
  std::mutex mutex_;  ///< held while the module is captured
  std::vector<Known> known_;
};

/// Returns the values of an evaluation's graph that its stages send to the driver, in the order of
/// the module's outputs or of the metrics.
[[nodiscard]] const std::vector<ValueId>& results_of(const Graph& evaluation);

/// The evaluation's stages, each of one of the program's by its name. Adds copies to the graph
/// where a stage writes what another one made (copy_written.h). Keeps EV-3.
/// Errors: CompilePartition where that keeps no EV-1.
[[nodiscard]] Partition evaluation_stages(Graph& evaluation, const CompiledProgram& model);

}  // namespace stagecraft
