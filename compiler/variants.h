/// Variants: the shapes of microbatches that a program was captured for, beside that of its example
/// batch. The order of dimensions in memory is part of a shape: operators choose kernels by it, and
/// capture records a view or a copy by it.
///
/// Held by the Program and all copies of it; asked by parts_of, for every microbatch of another
/// shape. The module is run on the caller's thread, in the modes that it was compiled in, with its
/// weights and buffers as they are: what it computes is recorded, not what comes out of it, so
/// weights that have changed since make no difference. Training uses those of the trainer (PR-1).
/// VC-1: a shape is captured once, however many trainers and threads ask for it; one that cannot be
///       leaves everything as it was.
/// VC-2: what follows from a shape depends on nothing else: not on which shapes came before.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/variant.h"
#include "stagecraft/compiler/workload.h"

namespace stagecraft {

class Variants {
 public:
  /// The example batch by its microbatches.
  struct Example {
    std::vector<Tensors> inputs, labels;
  };

  /// `model`: the program itself. `most` shapes in all, its own among them.
  /// `example`: the microbatches of the example batch; null where there are none to be had.
  Variants(std::shared_ptr<const CompiledProgram> model,
           ModuleSource source,
           int most,
           std::shared_ptr<const Example> example = nullptr);

  /// The variant for microbatches that look like this one; null for the program itself.
  /// Errors: CompileShape for one shape too many, for a module that is gone or cannot be captured
  ///         anew, and where what was captured does not fit the program (VT-1); UsageArgument when
  ///         the module has changed.
  /// Cost: for a new shape that of compile, copies of weights aside.
  [[nodiscard]] std::shared_ptr<const Variant> of(const std::vector<BatchSlice>& inputs,
                                                  const std::vector<BatchSlice>& labels,
                                                  const Tensors& input_part,
                                                  const Tensors& label_part);

  /// The module captured anew on one microbatch of any shape, uncut; it is no variant after that.
  /// Its parameters and buffers are the module's own.
  /// Errors: CompileShape for a module that is gone or cannot be captured for another shape;
  ///         UsageArgument when the module has changed.
  [[nodiscard]] Graph graph_of(const Tensors& inputs, const Tensors& labels) const;

  /// The variant for microbatches of `size` of the example batch's, all in one; captured with its
  /// first. Null for size 1. Requires: the example batch has as many. Errors, cost: likewise.
  [[nodiscard]] std::shared_ptr<const Variant> of_size(int size);

  /// How many shapes there are by now.
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
  std::vector<std::shared_ptr<const Variant>> captured_;
};

}  // namespace stagecraft
