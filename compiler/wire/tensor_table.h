/// TensorTable holds the tensors to which a message refers by number. They are sent separately,
/// over the data plane: a message contains only their facts.
///
/// WT-1: a tensor is sent as the flat span of its memory, first element to last, and is laid over
///       the span again at the other end. So strides, shared elements (stride 0) and gaps stay as
///       they were, even if the transport changes strides.
/// WT-2: a tensor that occurs twice is sent once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/wire/reader.h"
#include "stagecraft/compiler/wire/writer.h"

namespace stagecraft::wire {

struct TensorFacts {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes, strides;
  bool wrapped_number = false;  ///< made of a number: promotes types less than a tensor does
};

template <class V>
decltype(auto) visit_fields(TensorFacts& m, V&& v) {
  return v(m.dtype, m.sizes, m.strides, m.wrapped_number);
}

/// Returns the reason why the tensor cannot be sent; empty if it can. A tensor can be sent if it
/// has strided memory of this machine, is not a computed view (a conjugate) and does not train.
[[nodiscard]] std::string obstacle(const at::Tensor& tensor);

class TensorTable {
 public:
  /// Returns the tensor's number. Requires: no obstacle.
  std::uint64_t number_of(const at::Tensor& tensor);

  [[nodiscard]] const std::vector<TensorFacts>& facts() const { return facts_; }
  /// Returns contiguous tensors of one dimension, which are views of the memory of the given
  /// tensors.
  [[nodiscard]] const std::vector<at::Tensor>& spans() const { return spans_; }

 private:
  std::unordered_map<const c10::TensorImpl*, std::uint64_t> numbers_;
  std::vector<TensorFacts> facts_;
  std::vector<at::Tensor> spans_;
};

/// Makes the tensors again, over the memory of `spans`, and returns them.
/// Errors: WireFormat (through `in`) for facts that describe no tensor, or another tensor than the
/// one received.
[[nodiscard]] std::vector<at::Tensor> laid_over(const Reader& in,
                                                const std::vector<TensorFacts>& facts,
                                                const std::vector<at::Tensor>& spans);

}  // namespace stagecraft::wire
