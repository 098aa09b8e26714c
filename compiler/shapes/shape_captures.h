/// ShapeCaptures holds the captures of a program for further shapes of microbatches, in addition to
/// that of its example batch. The order of dimensions in memory is part of a shape, since operators
/// choose kernels by it, and capture records a view or a copy depending on it.
///
/// The Program and all its copies hold it; parts_of calls it for every microbatch of another shape.
/// The module runs on the caller's thread, in the modes that it was compiled in, with its present
/// weights and buffers. Capture records the operators, not their results, so later changes of the
/// weights make no difference. Training uses the trainer's weights (PR-1).
/// VC-1: a shape is captured once for all trainers and threads that request it. A shape that cannot
///       be captured leaves everything as it was.
/// VC-2: the capture for a shape depends on nothing else, in particular not on the shapes that came
///       before.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "stagecraft/compiler/module/workload.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/other_shape.h"

namespace stagecraft {

class ShapeCaptures {
 public:
  /// Example holds the microbatches of the example batch.
  struct Example {
    std::vector<Tensors> inputs, labels;
  };

  /// `model`: the program itself. `most`: the limit for all shapes, including the program's own.
  /// `example`: the microbatches of the example batch; null if there are none.
  ShapeCaptures(std::shared_ptr<const CompiledProgram> model,
                ModuleSource source,
                int most,
                std::shared_ptr<const Example> example = nullptr);

  /// Returns the capture for microbatches of this form; null for the program itself.
  /// Errors: CompileShape for one shape too many, for a module that no longer exists or cannot be
  ///         captured again, and if the capture does not fit the program (VT-1); UsageArgument if
  ///         the module has changed.
  /// Cost: for a new shape that of compile, except copies of weights.
  [[nodiscard]] std::shared_ptr<const OtherShape> of(const std::vector<BatchSlice>& inputs,
                                                     const std::vector<BatchSlice>& labels,
                                                     const Tensors& input_part,
                                                     const Tensors& label_part);

  /// Captures the module on one microbatch of any shape and returns the uncut graph, which is not
  /// kept. Its parameters and buffers are the module's own.
  /// Errors: CompileShape for a module that no longer exists or cannot be captured for another
  ///         shape; UsageArgument if the module has changed.
  [[nodiscard]] Graph graph_of(const Tensors& inputs, const Tensors& labels) const;

  /// Returns the capture for microbatches that join `size` microbatches of the example batch;
  /// captures it on the first ones. Null for size 1. Requires: the example batch has as many.
  /// Errors, cost: likewise.
  [[nodiscard]] std::shared_ptr<const OtherShape> of_size(int size);

  /// Returns an object without captures for a program that was made from this one, of the same
  /// module, with its stages in other chunks.
  [[nodiscard]] std::shared_ptr<ShapeCaptures> of_program(
      std::shared_ptr<const CompiledProgram> model) const;

  /// Returns how many shapes there are so far.
  [[nodiscard]] int count() const;

 private:
  [[nodiscard]] std::vector<StageProgram> captured(const Tensors& inputs,
                                                   const Tensors& labels) const;
  [[nodiscard]] Graph graph_now(const Tensors& inputs, const Tensors& labels) const;

  const std::shared_ptr<const CompiledProgram> model_;
  const ModuleSource source_;
  const int most_;
  const std::shared_ptr<const Example> example_;
  mutable std::mutex mutex_;  ///< held while a shape is captured
  std::vector<std::shared_ptr<const OtherShape>> captured_;
};

}  // namespace stagecraft
