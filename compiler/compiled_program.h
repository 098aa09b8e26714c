/// CompiledProgram: everything compile found out about a model, for the layers that lower and run
/// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/partition.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// What one tensor of the batch must look like, per microbatch.
struct BatchSlice {
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
  bool replicated = false;
};

struct CompiledProgram {
  Graph graph;
  Partition partition;
  StageGraph stage_graph;
  int microbatches = 1;
  std::vector<BatchSlice> inputs, labels;  ///< per microbatch
};

/// What keeps a program from computing with a tensor, as the end of a sentence ("is sparse"); empty
/// when nothing does.
[[nodiscard]] std::string why_unusable(const at::Tensor& tensor);

/// Errors: UsageArgument for a tensor of a batch that is undefined, not dense, not on the CPU, or
/// requires a gradient.
void check_batch_tensor(const at::Tensor& tensor, std::string_view what, std::size_t position);

/// Splits a batch into microbatches: result[m] holds every tensor's part m. The parts are copies,
/// so that the batch may be written to afterwards; only microbatches share those of a replicated
/// tensor.
/// Errors: UsageArgument for another number of tensors, CompileShape for another shape or dtype
///         than compiled; those of check_batch_tensor.
[[nodiscard]] std::vector<std::vector<at::Tensor>> split_batch(
    const Batch& batch,
    const std::vector<BatchSlice>& expected,
    int microbatches,
    std::string_view what);

/// Bytes of one microbatch of a value.
[[nodiscard]] std::int64_t bytes_of(const Value& value);

}  // namespace stagecraft
