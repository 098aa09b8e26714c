#include "stagecraft/compiler/fuse/block_operators.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include <ATen/CPUFunctions.h>
#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/Activation.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Copy.h>
#include <ATen/native/Pow.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/UnaryOps.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

namespace stagecraft {
namespace {

using Form = BlockOperator::Form;
using O = BlockOperands;

bool always(const TracedCall&) {
  return true;
}

/// a + alpha * b is one rounding where the compiler saw fit, two elsewhere.
bool unless_alpha_is_one(const TracedCall& call) {
  const auto* const alpha = std::get_if<c10::IValue>(&call.operands[2]);
  return alpha == nullptr || alpha->toScalar().toDouble() != 1.0;
}

/// Powers that kernels compute by products, quotients and roots, which are rounded the same way
/// everywhere.
bool unless_power_is_simple(const TracedCall& call) {
  constexpr std::array kSimple{0.0, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0};
  const auto* const power = std::get_if<c10::IValue>(&call.operands[1]);
  return power == nullptr ||
         std::ranges::find(kSimple, power->toScalar().toDouble()) == kSimple.end();
}

template <auto kKernel>
void unary(O& o) {
  kKernel(o.result, o.tensor(0));
}

template <auto kKernel>
void binary(O& o) {
  kKernel(o.result, o.tensor(0), o.tensor(1));
}

template <auto kKernel>
void with_scalar(O& o) {
  kKernel(o.result, o.tensor(0), o.scalar(1));
}

using Unary = at::Tensor& (*)(at::Tensor&, const at::Tensor&);
using Binary = at::Tensor& (*)(at::Tensor&, const at::Tensor&, const at::Tensor&);
using WithScalar = at::Tensor& (*)(at::Tensor&, const at::Tensor&, const at::Scalar&);

/// Calls one of LibTorch's kernels for the processor that this is.
template <auto& kStub>
void kernel(at::TensorIterator& iterator, const O&) {
  kStub(at::kCPU, iterator);
}

template <Unary kFunction, auto& kStub>
constexpr BlockOperator unary_row(std::string_view name, bool (*by_place)(const TracedCall&)) {
  return {name, Form::Element, unary<kFunction>, by_place, 1, kernel<kStub>};
}
template <Binary kFunction, auto& kStub>
constexpr BlockOperator binary_row(std::string_view name, bool (*by_place)(const TracedCall&)) {
  return {name, Form::Element, binary<kFunction>, by_place, 2, kernel<kStub>};
}
template <WithScalar kFunction, auto& kStub>
constexpr BlockOperator scalar_row(std::string_view name) {
  return {name, Form::Element, with_scalar<kFunction>, nullptr, 2, kernel<kStub>};
}
template <Unary kFunction>
constexpr BlockOperator unary_row(std::string_view name) {
  return {name, Form::Element, unary<kFunction>};
}
template <Binary kFunction>
constexpr BlockOperator binary_row(std::string_view name) {
  return {name, Form::Element, binary<kFunction>};
}
template <WithScalar kFunction>
constexpr BlockOperator scalar_row(std::string_view name) {
  return {name, Form::Element, with_scalar<kFunction>};
}

/// a + alpha * b; a - alpha * b.
void add_kernel(at::TensorIterator& iterator, const O& o) {
  at::native::add_stub(at::kCPU, iterator, o.scalar(2));
}
void sub_kernel(at::TensorIterator& iterator, const O& o) {
  at::native::add_stub(at::kCPU, iterator, -o.scalar(2));
}
void pow_kernel(at::TensorIterator& iterator, const O& o) {
  at::native::pow_tensor_scalar_stub(at::kCPU, iterator, o.scalar(1));
}
void sum_kernel(at::TensorIterator& iterator, const O&) {
  at::native::sum_stub(at::kCPU, iterator);
}
void copy_kernel(at::TensorIterator& iterator, const O&) {
  at::native::copy_stub(at::kCPU, iterator, /*non_blocking=*/false);
}

/// A number of C++ as an operand, which decides no type.
at::Tensor wrapped(const at::Scalar& scalar) {
  at::Tensor number = c10::scalar_to_tensor(scalar);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

/// Powers that the operator itself does not treat apart.
bool is_left_to_the_kernel(const at::Scalar& power) {
  return power.toDouble() != 0.0 && power.toDouble() != 1.0;
}

std::optional<at::Scalar> scalar_or_none(const O& o, std::size_t i) {
  return o.literal(i).isNone() ? std::nullopt : std::optional(o.scalar(i));
}

const BlockOperator kRows[] = {
    // sums and products
    {"aten::add.Tensor",
     Form::Element,
     [](O& o) { at::cpu::add_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); },
     unless_alpha_is_one,
     2,
     add_kernel},
    {"aten::add.Scalar",
     Form::Element,
     [](O& o) { at::add_out(o.result, o.tensor(0), o.scalar(1), o.scalar(2)); },
     unless_alpha_is_one,
     2,
     add_kernel},
    {"aten::sub.Tensor",
     Form::Element,
     [](O& o) { at::cpu::sub_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); },
     unless_alpha_is_one,
     2,
     sub_kernel},
    {"aten::sub.Scalar",
     Form::Element,
     [](O& o) { at::sub_out(o.result, o.tensor(0), o.scalar(1), o.scalar(2)); },
     unless_alpha_is_one,
     2,
     sub_kernel},
    {"aten::rsub.Scalar",
     Form::Element,
     [](O& o) { at::rsub_out(o.result, o.tensor(0), o.scalar(1), o.scalar(2)); },
     unless_alpha_is_one},
    {"aten::rsub.Tensor",
     Form::Element,
     [](O& o) { at::rsub_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); },
     unless_alpha_is_one},
    binary_row<at::cpu::mul_out, at::native::mul_stub>("aten::mul.Tensor", nullptr),
    scalar_row<at::mul_out, at::native::mul_stub>("aten::mul.Scalar"),
    binary_row<at::cpu::div_out, at::native::div_true_stub>("aten::div.Tensor", nullptr),
    scalar_row<at::div_out, at::native::div_true_stub>("aten::div.Scalar"),
    unary_row<at::cpu::neg_out, at::native::neg_stub>("aten::neg", nullptr),
    unary_row<at::abs_out, at::native::abs_stub>("aten::abs", nullptr),
    unary_row<at::cpu::sqrt_out, at::native::sqrt_stub>("aten::sqrt", nullptr),
    unary_row<at::cpu::rsqrt_out, at::native::rsqrt_stub>("aten::rsqrt", nullptr),
    unary_row<at::cpu::reciprocal_out, at::native::reciprocal_stub>("aten::reciprocal", nullptr),
    {"aten::pow.Tensor_Scalar",
     Form::Element,
     [](O& o) { at::cpu::pow_out(o.result, o.tensor(0), o.scalar(1)); },
     unless_power_is_simple,
     1,
     pow_kernel},
    {"aten::addcmul",
     Form::Element,
     [](O& o) {
       at::cpu::addcmul_out(o.result, o.tensor(0), o.tensor(1), o.tensor(2), o.scalar(3));
     },
     always},
    {"aten::addcdiv",
     Form::Element,
     [](O& o) {
       at::cpu::addcdiv_out(o.result, o.tensor(0), o.tensor(1), o.tensor(2), o.scalar(3));
     },
     always},
    // functions
    unary_row<at::cpu::exp_out, at::native::exp_stub>("aten::exp", always),
    unary_row<at::cpu::log_out, at::native::log_stub>("aten::log", always),
    unary_row<at::cpu::sin_out, at::native::sin_stub>("aten::sin", always),
    unary_row<at::cpu::cos_out, at::native::cos_stub>("aten::cos", always),
    unary_row<at::cpu::erf_out, at::native::erf_stub>("aten::erf", always),
    unary_row<at::cpu::tanh_out, at::native::tanh_stub>("aten::tanh", always),
    unary_row<at::cpu::sigmoid_out, at::native::sigmoid_stub>("aten::sigmoid", always),
    unary_row<at::cpu::silu_out, at::native::silu_stub>("aten::silu", always),
    {"aten::gelu",
     Form::Element,
     [](O& o) { at::cpu::gelu_out(o.result, o.tensor(0), o.literal(1).toStringView()); },
     always},
    unary_row<at::relu_out>("aten::relu"),
    // their derivatives
    binary_row<at::cpu::tanh_backward_out, at::native::tanh_backward_stub>("aten::tanh_backward",
                                                                           always),
    binary_row<at::cpu::sigmoid_backward_out, at::native::sigmoid_backward_stub>(
        "aten::sigmoid_backward", always),
    binary_row<at::cpu::silu_backward_out, at::native::silu_backward_stub>("aten::silu_backward",
                                                                           always),
    {"aten::gelu_backward",
     Form::Element,
     [](O& o) {
       at::cpu::gelu_backward_out(o.result, o.tensor(0), o.tensor(1), o.literal(2).toStringView());
     },
     always},
    {"aten::threshold_backward",
     Form::Element,
     [](O& o) {
       at::cpu::threshold_backward_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2));
     }},
    // choices
    binary_row<at::cpu::maximum_out, at::native::maximum_stub>("aten::maximum", nullptr),
    binary_row<at::cpu::minimum_out, at::native::minimum_stub>("aten::minimum", nullptr),
    {"aten::clamp",
     Form::Element,
     [](O& o) {
       at::cpu::clamp_out(o.result, o.tensor(0), scalar_or_none(o, 1), scalar_or_none(o, 2));
     }},
    scalar_row<at::cpu::clamp_min_out>("aten::clamp_min"),
    scalar_row<at::cpu::clamp_max_out>("aten::clamp_max"),
    {"aten::where.self",
     Form::Element,
     [](O& o) { at::where_out(o.result, o.tensor(0), o.tensor(1), o.tensor(2)); }},
    {"aten::masked_fill.Scalar",
     Form::Element,
     [](O& o) { at::masked_fill_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); }},
    unary_row<at::logical_not_out>("aten::logical_not"),
    unary_row<at::cpu::bitwise_not_out>("aten::bitwise_not"),
    binary_row<at::logical_and_out>("aten::logical_and"),
    binary_row<at::cpu::eq_out>("aten::eq.Tensor"),
    binary_row<at::cpu::ne_out>("aten::ne.Tensor"),
    binary_row<at::cpu::lt_out>("aten::lt.Tensor"),
    binary_row<at::cpu::le_out>("aten::le.Tensor"),
    binary_row<at::cpu::gt_out>("aten::gt.Tensor"),
    binary_row<at::cpu::ge_out>("aten::ge.Tensor"),
    scalar_row<at::cpu::eq_out>("aten::eq.Scalar"),
    scalar_row<at::cpu::ne_out>("aten::ne.Scalar"),
    scalar_row<at::cpu::lt_out>("aten::lt.Scalar"),
    scalar_row<at::cpu::le_out>("aten::le.Scalar"),
    scalar_row<at::cpu::gt_out>("aten::gt.Scalar"),
    scalar_row<at::cpu::ge_out>("aten::ge.Scalar"),
    // copies; what dtype and order they have is that of the result
    {"aten::_to_copy",
     Form::Element,
     [](O& o) { o.result.copy_(o.tensor(0)); },
     nullptr,
     1,
     copy_kernel},
    {"aten::clone",
     Form::Element,
     [](O& o) { o.result.copy_(o.tensor(0)); },
     nullptr,
     1,
     copy_kernel},
    {"aten::copy", Form::Element, [](O& o) { o.result.copy_(o.tensor(1)); }},
    {"aten::zeros_like", Form::Element, [](O& o) { o.result.zero_(); }},
    {"aten::ones_like", Form::Element, [](O& o) { o.result.fill_(1); }},
    // along the last dimension
    {"aten::sum.dim_IntList",
     Form::Row,
     [](O& o) { at::cpu::sum_out(o.result, o.tensor(0), at::IntArrayRef{-1}, true); },
     nullptr,
     1,
     sum_kernel},
    {"aten::mean.dim",
     Form::Row,
     [](O& o) { at::cpu::mean_out(o.result, o.tensor(0), at::IntArrayRef{-1}, true); },
     nullptr,
     1,
     sum_kernel,
     BlockOperator::Also::Mean},
    {"aten::amax",
     Form::Row,
     [](O& o) { at::cpu::amax_out(o.result, o.tensor(0), at::IntArrayRef{-1}, true); }},
    {"aten::_softmax",
     Form::Row,
     [](O& o) { at::cpu::_softmax_out(o.result, o.tensor(0), -1, false); }},
    {"aten::_log_softmax",
     Form::Row,
     [](O& o) { at::cpu::_log_softmax_out(o.result, o.tensor(0), -1, false); }},
    {"aten::_softmax_backward_data",
     Form::Row,
     [](O& o) {
       at::cpu::_softmax_backward_data_out(
           o.result, o.tensor(0), o.tensor(1), -1, o.result.scalar_type());
     }},
    {"aten::_log_softmax_backward_data",
     Form::Row,
     [](O& o) {
       at::cpu::_log_softmax_backward_data_out(
           o.result, o.tensor(0), o.tensor(1), -1, o.result.scalar_type());
     }},
    {"aten::cat",
     Form::Row,
     [](O& o) { at::cpu::cat_out(o.result, o.list(0), -1); },
     nullptr,
     0,
     copy_kernel,
     BlockOperator::Also::Cat},
    {"aten::slice_backward",
     Form::Row,
     [](O& o) {
       o.result.zero_();
       o.result.slice(-1, o.literal(3).toInt(), o.literal(4).toInt(), o.literal(5).toInt())
           .copy_(o.tensor(0));
     }},
    // parts
    {"aten::slice.Tensor", Form::View},
    {"aten::split.Tensor", Form::View},
    {"aten::split_with_sizes", Form::View},
    {"aten::expand", Form::View},
};

}  // namespace

std::optional<BlockKernel> BlockKernel::of(const BlockOperator& op, const BlockOperands& o) {
  const at::ScalarType type = o.result.scalar_type();
  const bool whole = type == at::kFloat || type == at::kDouble;
  if (op.kernel == nullptr || !(whole || (type == at::kBFloat16 && op.form == Form::Element)) ||
      (op.kernel == pow_kernel && !is_left_to_the_kernel(o.scalar(1)))) {
    return std::nullopt;
  }
  BlockKernel made;
  at::Tensor result = o.result;
  if (op.also == BlockOperator::Also::Cat) {
    std::int64_t column = 0;
    for (const at::Tensor& part : o.list(0)) {
      if (part.scalar_type() != type) {
        return std::nullopt;
      }
      at::Tensor into = result.narrow(-1, column, part.size(-1));
      made.parts_.push_back({op.kernel,
                             at::TensorIterator::unary_op(into, part),
                             result,
                             part,
                             {},
                             column * result.stride(-1) * result.element_size()});
      column += part.size(-1);
    }
    return made;
  }
  const at::Tensor& first = o.tensor(0);
  at::Tensor second;
  if (op.operands == 2) {
    const auto* const literal = std::get_if<const c10::IValue*>(&o.operands[1]);
    second = literal != nullptr && (*literal)->isScalar() ? wrapped((*literal)->toScalar())
                                                          : o.tensor(1);
  }
  for (const at::Tensor& operand : {first, second}) {
    if (operand.defined() && operand.dim() != 0 && operand.scalar_type() != type) {
      return std::nullopt;
    }
  }
  if (first.dim() == 0) {
    return std::nullopt;
  }
  made.parts_.push_back({op.kernel,
                         op.form == Form::Row ? at::TensorIterator::reduce_op(result, first)
                         : op.operands == 1   ? at::TensorIterator::unary_op(result, first)
                                            : at::TensorIterator::binary_op(result, first, second),
                         result,
                         first,
                         second});
  if (op.also == BlockOperator::Also::Mean) {
    const at::Tensor columns = wrapped(first.size(-1));
    made.parts_.push_back({kernel<at::native::div_true_stub>,
                           at::TensorIterator::binary_op(result, result, columns),
                           result,
                           result,
                           columns});
  }
  return made;
}

void BlockKernel::run(const BlockOperands& operands) {
  for (Part& part : parts_) {
    part.iterator.unsafe_replace_operand(
        0, static_cast<std::byte*>(part.result.mutable_data_ptr()) + part.offset);
    part.iterator.unsafe_replace_operand(1, part.first.mutable_data_ptr());
    if (part.second.defined() && part.second.dim() != 0) {
      part.iterator.unsafe_replace_operand(2, part.second.mutable_data_ptr());
    }
    part.kernel(part.iterator, operands);
  }
}

bool is_cheap(const TracedCall& call) {
  const BlockOperator* const row = block_operator(operator_name(call));
  return row != nullptr && (row->form == Form::Element
                                ? row->by_place == nullptr || !row->by_place(call)
                                : row->form == Form::View || row->also == BlockOperator::Also::Cat);
}

const BlockOperator* block_operator(std::string_view name) {
  static const auto all = [] {
    std::unordered_map<std::string_view, const BlockOperator*> rows;
    for (const BlockOperator& row : kRows) {
      rows.emplace(row.name, &row);
    }
    return rows;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace stagecraft
