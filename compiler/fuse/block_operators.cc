#include "stagecraft/compiler/fuse/block_operators.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include <ATen/CPUFunctions.h>
#include <ATen/Functions.h>

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

template <Unary kKernel>
constexpr BlockOperator exact_unary(std::string_view name) {
  return {name, Form::Element, unary<kKernel>};
}
template <Unary kKernel>
constexpr BlockOperator placed_unary(std::string_view name) {
  return {name, Form::Element, unary<kKernel>, always};
}
template <Binary kKernel>
constexpr BlockOperator exact_binary(std::string_view name) {
  return {name, Form::Element, binary<kKernel>};
}
template <Binary kKernel>
constexpr BlockOperator placed_binary(std::string_view name) {
  return {name, Form::Element, binary<kKernel>, always};
}
template <WithScalar kKernel>
constexpr BlockOperator exact_scalar(std::string_view name) {
  return {name, Form::Element, with_scalar<kKernel>};
}

std::optional<at::Scalar> scalar_or_none(const O& o, std::size_t i) {
  return o.literal(i).isNone() ? std::nullopt : std::optional(o.scalar(i));
}

const BlockOperator kRows[] = {
    // sums and products
    {"aten::add.Tensor",
     Form::Element,
     [](O& o) { at::cpu::add_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); },
     unless_alpha_is_one},
    {"aten::add.Scalar",
     Form::Element,
     [](O& o) { at::add_out(o.result, o.tensor(0), o.scalar(1), o.scalar(2)); },
     unless_alpha_is_one},
    {"aten::sub.Tensor",
     Form::Element,
     [](O& o) { at::cpu::sub_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); },
     unless_alpha_is_one},
    {"aten::sub.Scalar",
     Form::Element,
     [](O& o) { at::sub_out(o.result, o.tensor(0), o.scalar(1), o.scalar(2)); },
     unless_alpha_is_one},
    {"aten::rsub.Scalar",
     Form::Element,
     [](O& o) { at::rsub_out(o.result, o.tensor(0), o.scalar(1), o.scalar(2)); },
     unless_alpha_is_one},
    {"aten::rsub.Tensor",
     Form::Element,
     [](O& o) { at::rsub_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); },
     unless_alpha_is_one},
    exact_binary<at::cpu::mul_out>("aten::mul.Tensor"),
    exact_scalar<at::mul_out>("aten::mul.Scalar"),
    exact_binary<at::cpu::div_out>("aten::div.Tensor"),
    exact_scalar<at::div_out>("aten::div.Scalar"),
    exact_unary<at::cpu::neg_out>("aten::neg"),
    exact_unary<at::abs_out>("aten::abs"),
    exact_unary<at::cpu::sqrt_out>("aten::sqrt"),
    exact_unary<at::cpu::rsqrt_out>("aten::rsqrt"),
    exact_unary<at::cpu::reciprocal_out>("aten::reciprocal"),
    {"aten::pow.Tensor_Scalar",
     Form::Element,
     [](O& o) { at::cpu::pow_out(o.result, o.tensor(0), o.scalar(1)); },
     unless_power_is_simple},
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
    placed_unary<at::cpu::exp_out>("aten::exp"),
    placed_unary<at::cpu::log_out>("aten::log"),
    placed_unary<at::cpu::sin_out>("aten::sin"),
    placed_unary<at::cpu::cos_out>("aten::cos"),
    placed_unary<at::cpu::erf_out>("aten::erf"),
    placed_unary<at::cpu::tanh_out>("aten::tanh"),
    placed_unary<at::cpu::sigmoid_out>("aten::sigmoid"),
    placed_unary<at::cpu::silu_out>("aten::silu"),
    {"aten::gelu",
     Form::Element,
     [](O& o) { at::cpu::gelu_out(o.result, o.tensor(0), o.literal(1).toStringView()); },
     always},
    exact_unary<at::relu_out>("aten::relu"),
    // their derivatives
    placed_binary<at::cpu::tanh_backward_out>("aten::tanh_backward"),
    placed_binary<at::cpu::sigmoid_backward_out>("aten::sigmoid_backward"),
    placed_binary<at::cpu::silu_backward_out>("aten::silu_backward"),
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
    exact_binary<at::cpu::maximum_out>("aten::maximum"),
    exact_binary<at::cpu::minimum_out>("aten::minimum"),
    {"aten::clamp",
     Form::Element,
     [](O& o) {
       at::cpu::clamp_out(o.result, o.tensor(0), scalar_or_none(o, 1), scalar_or_none(o, 2));
     }},
    exact_scalar<at::cpu::clamp_min_out>("aten::clamp_min"),
    exact_scalar<at::cpu::clamp_max_out>("aten::clamp_max"),
    {"aten::where.self",
     Form::Element,
     [](O& o) { at::where_out(o.result, o.tensor(0), o.tensor(1), o.tensor(2)); }},
    {"aten::masked_fill.Scalar",
     Form::Element,
     [](O& o) { at::masked_fill_out(o.result, o.tensor(0), o.tensor(1), o.scalar(2)); }},
    exact_unary<at::logical_not_out>("aten::logical_not"),
    exact_unary<at::cpu::bitwise_not_out>("aten::bitwise_not"),
    exact_binary<at::logical_and_out>("aten::logical_and"),
    exact_binary<at::cpu::eq_out>("aten::eq.Tensor"),
    exact_binary<at::cpu::ne_out>("aten::ne.Tensor"),
    exact_binary<at::cpu::lt_out>("aten::lt.Tensor"),
    exact_binary<at::cpu::le_out>("aten::le.Tensor"),
    exact_binary<at::cpu::gt_out>("aten::gt.Tensor"),
    exact_binary<at::cpu::ge_out>("aten::ge.Tensor"),
    exact_scalar<at::cpu::eq_out>("aten::eq.Scalar"),
    exact_scalar<at::cpu::ne_out>("aten::ne.Scalar"),
    exact_scalar<at::cpu::lt_out>("aten::lt.Scalar"),
    exact_scalar<at::cpu::le_out>("aten::le.Scalar"),
    exact_scalar<at::cpu::gt_out>("aten::gt.Scalar"),
    exact_scalar<at::cpu::ge_out>("aten::ge.Scalar"),
    // copies; what dtype and order they have is that of the result
    {"aten::_to_copy", Form::Element, [](O& o) { o.result.copy_(o.tensor(0)); }},
    {"aten::clone", Form::Element, [](O& o) { o.result.copy_(o.tensor(0)); }},
    {"aten::copy", Form::Element, [](O& o) { o.result.copy_(o.tensor(1)); }},
    {"aten::zeros_like", Form::Element, [](O& o) { o.result.zero_(); }},
    {"aten::ones_like", Form::Element, [](O& o) { o.result.fill_(1); }},
    // along the last dimension
    {"aten::sum.dim_IntList",
     Form::Row,
     [](O& o) { at::cpu::sum_out(o.result, o.tensor(0), at::IntArrayRef{-1}, true); }},
    {"aten::mean.dim",
     Form::Row,
     [](O& o) { at::cpu::mean_out(o.result, o.tensor(0), at::IntArrayRef{-1}, true); }},
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
    {"aten::cat", Form::Row, [](O& o) { at::cpu::cat_out(o.result, o.list(0), -1); }},
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
