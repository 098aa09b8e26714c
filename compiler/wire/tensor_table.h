/// TensorTable: the tensors that a message speaks of by number. They travel beside it, over the
/// data plane: a message has their facts only.
///
/// WT-1: a tensor travels as the flat span of its memory, first element to last, and is laid over
///       it again at the other end: so strides, shared elements (stride 0) and gaps are as they
///       were, whatever becomes of strides on the way.
/// WT-2: a tensor that is met twice travels once.
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

/// What keeps the tensor from travelling, or nothing: only tensors of strided memory of this
/// machine can, which are no views that are computed (conjugates) and train nothing.
[[nodiscard]] std::string obstacle(const at::Tensor& tensor);

class TensorTable {
 public:
  /// The tensor's number. Requires: no obstacle.
  std::uint64_t number_of(const at::Tensor& tensor);

  [[nodiscard]] const std::vector<TensorFacts>& facts() const { return facts_; }
  /// Contiguous, of one dimension; views of the memory of those that were given.
  [[nodiscard]] const std::vector<at::Tensor>& spans() const { return spans_; }

 private:
  std::unordered_map<const c10::TensorImpl*, std::uint64_t> numbers_;
  std::vector<TensorFacts> facts_;
  std::vector<at::Tensor> spans_;
};

/// The tensors themselves again, over the memory of `spans`.
/// Errors: WireFormat (through `in`) for facts of no tensor, or of another than came.
[[nodiscard]] std::vector<at::Tensor> laid_over(const Reader& in,
                                                const std::vector<TensorFacts>& facts,
                                                const std::vector<at::Tensor>& spans);

}  // namespace stagecraft::wire
