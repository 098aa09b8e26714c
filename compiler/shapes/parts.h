/// parts divides a batch of any shape into the microbatches of a step.
///
/// The trainer and the reference use it for every step.
/// PT-1: if the number of microbatches M divides dim 0 of all tensors of a batch, the batch is
///       split into M equal parts. Any other batch has N samples, the largest number such that
///       every tensor has a whole number of rows per sample (usually its number of rows). The first
///       N mod M parts then have one sample more than the others, as in torch::tensor_split: 13
///       over 4 are 4, 3, 3, 3. An evaluation may have fewer samples than microbatches: the
///       remaining parts repeat the last sample and weigh 0. So do the remaining parts of a batch
///       that is fewer whole parts of the compiled size, where an evaluation measures the loss: it
///       is one of microbatches, and a model from a file may take no other size.
/// PT-3: a part is a copy without gaps. Its dimensions lie in memory in the same order as in the
///       same rows of the batch: channels-last stays channels-last.
/// PT-2: a part weighs in proportion to its samples, unless the maker of the trainer says what it
///       counts (LM-1); the first part weighs 1. If an update has several batches, that is the
///       first part of its first batch. Loss and gradient of a step are the means over its parts by
///       these weights. By samples, they equal the means over all samples if a microbatch's are
///       means.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/shapes/other_shape.h"

namespace stagecraft {

/// FirstPart is the first part of a batch, for capture, without a graph of autograd.
struct FirstPart {
  std::vector<at::Tensor> inputs, labels;
  std::vector<BatchSlice> input_slices, label_slices;
};

/// Returns the first part.
/// Errors: UsageArgument for a batch that differs from the program's in more than sizes. A batch
/// without labels is always accepted.
[[nodiscard]] FirstPart first_part(const CompiledProgram& program,
                                   const Batch& inputs,
                                   const Batch& labels);

struct Parts {
  std::vector<std::vector<at::Tensor>> inputs, labels;  ///< per microbatch
  /// Per microbatch; null for the shape that was compiled; empty if all are null.
  std::vector<std::shared_ptr<const OtherShape>> shapes;
  std::vector<double> weights;     ///< per microbatch; empty if all are 1
  std::int64_t samples = 1;        ///< of the batch, counted as in PT-1
  std::int64_t first_samples = 1;  ///< of the first part; 1 if no tensor is split

  [[nodiscard]] double weight(std::size_t microbatch) const {
    return weights.empty() ? 1.0 : weights[microbatch];
  }
};

/// Splits a batch, and captures the program for shapes that are new.
/// Errors: UsageArgument and CompileShape, as split_batch and ShapeCaptures::of; CompileShape for
///         fewer samples than microbatches.
[[nodiscard]] Parts parts_of(const Program& program,
                             const Batch& inputs,
                             const Batch& labels,
                             HostMemory memory = HostMemory::Pageable);

/// Returns the parts, without tensors, of a batch of the compiled shape that is elsewhere.
[[nodiscard]] Parts parts_as_compiled(const Program& program);

}  // namespace stagecraft
