/// Evaluations holds programs of a program's module in evaluation mode (dropout off, running
/// statistics used). They consist of forwards that run on the same weights and buffers.
///
/// The Program and all its copies hold it. The trainer calls it for predict and evaluate. The
/// module is captured on the caller's thread at the first call, and then put back into its modes.
/// EV-1: an evaluation has the stages of the program, with their names, parameters and buffers. Its
///       edges keep the program's order of stages, so every schedule that trains the program also
///       runs the evaluation. A stage may have nothing to do.
/// EV-2: it is captured once for a list of metrics, and once more for every shape of microbatches.
/// EV-3: parameters and buffers that no stage of the program has are constants of the stages that
///       use them. The kind of a constant's value shows this. The caller that runs the evaluation
///       replaces these constants by its own tensors.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/metric.h"
#include "stagecraft/compiler/module/workload.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/program.h"

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

}  // namespace stagecraft
