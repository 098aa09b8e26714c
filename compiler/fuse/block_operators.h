/// block_operators: the operators below autograd that can be computed block by block, each by
/// LibTorch's own kernel for it.
///
/// A row is the one place to add another. What a row computes of a block of rows has to be what its
/// operator computes of these rows; where a kernel's bits depend on where in memory an element
/// lies (a vector's lane or the rest behind the last whole vector), the row says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/fuse/trace.h"

namespace stagecraft {

/// What a kernel gets of a block, in the order of the operator's schema.
class BlockOperands {
 public:
  using One = std::variant<const at::Tensor*, std::vector<at::Tensor>, const c10::IValue*>;

  std::vector<One> operands;
  at::Tensor result;

  [[nodiscard]] const at::Tensor& tensor(std::size_t i) const {
    const auto* const value = std::get_if<const at::Tensor*>(&operands[i]);
    return value != nullptr ? **value : literal(i).toTensor();
  }
  [[nodiscard]] const std::vector<at::Tensor>& list(std::size_t i) const {
    return std::get<std::vector<at::Tensor>>(operands[i]);
  }
  [[nodiscard]] const c10::IValue& literal(std::size_t i) const {
    return *std::get<const c10::IValue*>(operands[i]);
  }
  [[nodiscard]] at::Scalar scalar(std::size_t i) const { return literal(i).toScalar(); }
};

struct BlockOperator {
  enum class Form : std::uint8_t {
    Element,  ///< an element of the result depends on the same element of the operands
    Row,      ///< a row of the result on the same row of the operands
    View,     ///< the result is a part of the operand, or it repeated: nothing is computed
  };
  std::string_view name;
  Form form = Form::Element;
  void (*run)(BlockOperands&) = nullptr;
  /// Whether bits may depend on where an element lies; null: they never do.
  bool (*by_place)(const TracedCall&) = nullptr;
  /// The kernel alone, on an iterator over the result and this many operands, which is made once
  /// and moved from block to block: checks and iterators cost more than a small block. Null where
  /// only run() computes it.
  int operands = 0;
  void (*kernel)(at::TensorIterator&, const BlockOperands&) = nullptr;
  enum class Also : std::uint8_t { Nothing, Mean, Cat };
  Also also = Also::Nothing;  ///< of kernels that are a sum, and a copy of each of a list
};

/// The kernel of a call, prepared for tensors of one shape that move.
class BlockKernel {
 public:
  /// Nothing where the operator has none, or none for these types. Keeps handles on the tensors.
  [[nodiscard]] static std::optional<BlockKernel> of(const BlockOperator& op,
                                                     const BlockOperands& operands);

  /// Computes the block where the tensors are now.
  void run(const BlockOperands& operands);

 private:
  /// One kernel on one iterator, whose operands are where these tensors are.
  struct Part {
    void (*kernel)(at::TensorIterator&, const BlockOperands&) = nullptr;
    at::TensorIterator iterator;
    at::Tensor result, first, second;  ///< second: undefined, or a number, where it does not move
    std::int64_t offset = 0;           ///< bytes from where the result begins
  };
  std::vector<Part> parts_;
};

/// Whether a block of it costs about what it costs to read it: no function, no sum.
[[nodiscard]] bool is_cheap(const TracedCall& call);

/// The row of an operator; null where it has none.
[[nodiscard]] const BlockOperator* block_operator(std::string_view name);

}  // namespace stagecraft
