/// parts: a batch as the microbatches of a step, whatever its shape.
///
/// Used by the trainer and by the reference, for every step.
/// PT-1: a batch whose tensors all divide by the number of microbatches M in dim 0 is split into M
///       equal parts. Any other is of N samples, the most that every tensor has a whole number of
///       rows for each (as a rule, its rows), and the first N mod M parts have a sample more than
///       the others, as in torch::tensor_split: 13 over 4 are 4, 3, 3, 3.
///       An evaluation takes fewer samples than microbatches too: those left over repeat the last
///       sample and weigh 0.
/// PT-3: a part is a copy without gaps, whose dimensions lie in memory in the order that those of
///       the same rows of the batch have: channels-last stays channels-last.
/// PT-2: parts weigh by their samples, the first 1; where an update has several batches, the first
///       of its first one. Loss and gradient of a step are the means over its parts by these
///       weights: those over all samples, where a microbatch's are means.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/compiler/split_batch.h"
#include "stagecraft/compiler/variant.h"

namespace stagecraft {

/// What a batch is captured with: the first of its parts, without a graph.
struct FirstPart {
  std::vector<at::Tensor> inputs, labels;
  std::vector<BatchSlice> input_slices, label_slices;
};

/// Errors: UsageArgument for a batch that is not like that of the program, sizes aside. No labels
///         at all are always alike.
[[nodiscard]] FirstPart first_part(const CompiledProgram& program,
                                   const Batch& inputs,
                                   const Batch& labels);

struct Parts {
  std::vector<std::vector<at::Tensor>> inputs, labels;  ///< per microbatch
  /// Per microbatch, null for the shape compiled for; empty where all are.
  std::vector<std::shared_ptr<const Variant>> variants;
  std::vector<double> weights;     ///< per microbatch; empty where all are 1
  std::int64_t samples = 1;        ///< of the batch, as PT-1 counts them
  std::int64_t first_samples = 1;  ///< of the first part; 1 where no tensor is split
};

/// Splits a batch, and has the program captured for shapes that are new.
/// Errors: UsageArgument and CompileShape, as split_batch and Variants::of; CompileShape for fewer
///         samples than microbatches.
[[nodiscard]] Parts parts_of(const Program& program, const Batch& inputs, const Batch& labels);

/// Of a batch of the shape compiled for, which is not here: without tensors.
[[nodiscard]] Parts parts_as_compiled(const Program& program);

}  // namespace stagecraft
