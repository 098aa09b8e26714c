/// Evaluations holds programs of a program's module in evaluation mode (dropout off, running
/// statistics used). They consist of forwards that run on the same weights and buffers.
///
/// The Program and all its copies hold it. The trainer calls it for predict and evaluate. The
/// module is captured on the caller's thread at the first request, and put back into its modes
/// afterwards.
/// EV-1: an evaluation has the program's stages, by name, each on the parameters and buffers of
///       that stage, and no edge that the program's order of stages does not allow. Any schedule
///       that trains the program can therefore run it. A stage may have nothing to do.
/// EV-2: the module is captured once per row of metrics, and once more for every shape of
///       microbatches.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/metric.h"
#include "stagecraft/compiler/workload.h"

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

/// Returns the evaluation's stages, each for one of the program's stages by name. Adds copies to
/// the graph if a stage writes a value that another one made (copy_written.h).
/// Errors: CompilePartition if EV-1 cannot be kept.
[[nodiscard]] Partition evaluation_stages(Graph& evaluation, const CompiledProgram& model);

}  // namespace stagecraft
