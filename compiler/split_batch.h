/// split_batch: a batch as its microbatches. What each of them must look like is found out once, of
/// the example batch (`slices_of`, by compile), and held against every batch of training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/memory_order.h"

namespace stagecraft {

/// What one tensor of the batch must look like, per microbatch.
struct BatchSlice {
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
  bool replicated = false;
  MemoryOrder order;  ///< in which its dimensions lie in memory

  friend bool operator==(const BatchSlice&, const BatchSlice&) = default;
};

/// What each microbatch gets of the example batch. `what` names the batch in messages ("input",
/// "label").
/// Errors: UsageArgument for a tensor that is undefined, not dense, not on the CPU, requires a
///         gradient or has no dimension to split; CompileShape where the microbatches do not divide
///         it.
[[nodiscard]] std::vector<BatchSlice> slices_of(const Batch& batch,
                                                int microbatches,
                                                std::string_view what);

/// What a microbatch that is cut already looks like. `batch`: of which it is.
[[nodiscard]] std::vector<BatchSlice> slices_of_part(const std::vector<at::Tensor>& part,
                                                     const Batch& batch);

/// The order of memory does not matter.
/// Errors: UsageArgument for another number of tensors, and for tensors that slices_of refuses;
///         CompileShape for another shape or dtype than compiled.
void check_batch(const Batch& batch,
                 const std::vector<BatchSlice>& expected,
                 int microbatches,
                 std::string_view what);

/// What microbatch `m` gets of a tensor that was checked: a copy, in the slice's order of memory.
[[nodiscard]] at::Tensor microbatch_of(const BatchTensor& given,
                                       const BatchSlice& slice,
                                       std::size_t m);

/// Splits a batch into microbatches: result[m] holds every tensor's part m. The parts are copies,
/// so that the batch may be written to afterwards, in the order of memory that `expected` has; only
/// microbatches share those of a replicated tensor. Errors: those of check_batch.
[[nodiscard]] std::vector<std::vector<at::Tensor>> split_batch(
    const Batch& batch,
    const std::vector<BatchSlice>& expected,
    int microbatches,
    std::string_view what);

/// What keeps a program from computing with a tensor, as the end of a sentence ("is sparse"); empty
/// when nothing does.
[[nodiscard]] std::string why_unusable(const at::Tensor& tensor);

template <class V>
decltype(auto) visit_fields(BatchSlice& m, V&& v) {
  return v(m.sizes, m.dtype, m.replicated, m.order);
}

}  // namespace stagecraft
