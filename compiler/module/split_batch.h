/// split_batch divides a batch into its microbatches. slices_of finds the expected form of each
/// microbatch once, from the example batch (compile calls it). Every batch of training is checked
/// against this form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/module/batch.h"

namespace stagecraft {

/// BatchSlice describes the part of one tensor of the batch that each microbatch gets.
struct BatchSlice {
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
  bool replicated = false;
  MemoryOrder order;  ///< the order in which its dimensions lie in memory

  friend bool operator==(const BatchSlice&, const BatchSlice&) = default;
};

/// Returns the form of each microbatch of the example batch. `what` names the batch in messages
/// ("input", "label").
/// Errors: UsageArgument for a tensor that is undefined, not dense, on another device
///         (program_device.h), requires a gradient or has no dimension to split; CompileShape if
///         the microbatches do not divide it.
[[nodiscard]] std::vector<BatchSlice> slices_of(const Batch& batch,
                                                int microbatches,
                                                std::string_view what);

/// Returns the form of a microbatch that is already split. `batch`: the batch to which it belongs.
[[nodiscard]] std::vector<BatchSlice> slices_of_part(const std::vector<at::Tensor>& part,
                                                     const Batch& batch);

/// Checks a batch. The order of memory does not matter.
/// Errors: UsageArgument for another number of tensors, and for tensors that slices_of refuses;
///         CompileShape for another shape or dtype than compiled.
void check_batch(const Batch& batch,
                 const std::vector<BatchSlice>& expected,
                 int microbatches,
                 std::string_view what);

/// Returns microbatch `m`'s part of a tensor that was checked: a copy, in the slice's order of
/// memory.
[[nodiscard]] at::Tensor microbatch_of(const BatchTensor& given,
                                       const BatchSlice& slice,
                                       std::size_t m,
                                       HostMemory memory = HostMemory::Pageable);

/// Splits a batch into microbatches: result[m] holds part m of every tensor. The parts are copies
/// in the order of memory that `expected` has, so the batch may be written to afterwards. All
/// microbatches share the copy of a replicated tensor. Errors: those of check_batch.
[[nodiscard]] std::vector<std::vector<at::Tensor>> split_batch(
    const Batch& batch,
    const std::vector<BatchSlice>& expected,
    int microbatches,
    std::string_view what,
    HostMemory memory = HostMemory::Pageable);

/// Returns the reason why a program cannot compute with a tensor, as the end of a sentence ("is
/// sparse"); empty if it can.
[[nodiscard]] std::string why_unusable(const at::Tensor& tensor);

template <class V>
decltype(auto) visit_fields(BatchSlice& m, V&& v) {
  return v(m.sizes, m.dtype, m.replicated, m.order);
}

}  // namespace stagecraft
