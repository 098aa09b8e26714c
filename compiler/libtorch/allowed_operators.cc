#include "stagecraft/compiler/libtorch/allowed_operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/argument_type.h"

namespace stagecraft {
namespace {

using Names = std::unordered_set<std::string>;

constexpr std::string_view kAten = "aten::";

constexpr std::array<std::string_view, 22> kNamespaces{"aten",
                                                       "prim",
                                                       "prims",
                                                       "onnx",
                                                       "_c10d_functional",
                                                       "_c10d_functional_autograd",
                                                       "_dtensor",
                                                       "_quantized",
                                                       "_test",
                                                       "c10d",
                                                       "inductor",
                                                       "mkl",
                                                       "mkldnn",
                                                       "mkldnn_prepacked",
                                                       "onednn",
                                                       "prepacked",
                                                       "profiler",
                                                       "quantization",
                                                       "quantized",
                                                       "sparse",
                                                       "static_runtime",
                                                       "symm_mem"};

/// Calls `visit(word)` for each word of the text. The end of a line ends a word.
template <class Visit>
void for_each_word(std::string_view text, Visit&& visit) {
  constexpr std::string_view kSpace = " \n";
  for (std::size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;
       at = text.find_first_not_of(kSpace, at)) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    visit(text.substr(at, end - at));
    at = end;
  }
}

Names operators_of_list() {
  Names names;
  std::string_view name;
  for_each_word(internal::kAllowedOperators, [&](std::string_view word) {
    if (word.ends_with(':')) {
      name = word.substr(0, word.size() - 1);
    } else {
      names.insert(fmt::format("{}{}.{}", kAten, name, word));
    }
  });
  return names;
}

Names script_names_of_list() {
  Names names;
  for_each_word(internal::kAllowedScriptFunctions,
                [&](std::string_view word) { names.insert(fmt::format("{}{}", kAten, word)); });
  for_each_word(internal::kAllowedScriptInstructions,
                [&](std::string_view word) { names.insert(fmt::format("prim::{}", word)); });
  return names;
}

/// LibTorch reads `offsets` as a list, for any number of dimensions.
void check_embedding_bag(const torch::jit::Stack& arguments) {
  const std::int64_t indices = arguments.at(1).toTensor().dim();
  const std::int64_t offsets = arguments.at(2).toTensor().dim();
  if (indices != 1 || offsets != 1) {
    throw Error(
        Errc::CompileShape,
        fmt::format(
            "expected indices and offsets of one dimension, found {} and {}", indices, offsets));
  }
}

/// LibTorch divides by the number of rows.
void check_weight_norm(const torch::jit::Stack& arguments) {
  if (arguments.at(0).toTensor().numel() == 0) {
    throw Error(Errc::CompileShape, "expected a weight with elements, found none");
  }
}

/// LibTorch divides by the step after converting it to the result's type.
void check_arange(const torch::jit::Stack& arguments) {
  const c10::IValue& kind = arguments.at(3);  // a type, nothing, or the tensor to write
  const bool integral =
      kind.isTensor()
          ? c10::isIntegralType(kind.toTensor().scalar_type(), /*includeBool=*/true)
          : kind.isInt() && c10::isIntegralType(static_cast<at::ScalarType>(kind.toInt()),
                                                /*includeBool=*/true);
  if (integral && std::abs(arguments.at(2).toScalar().toDouble()) < 1.0) {
    throw Error(Errc::CompileShape, "expected a step of 1 or more for whole numbers, found less");
  }
}

/// Returns whether every whole number of a tensor of at most two dimensions is in [0, end). Reads
/// memory directly, since an operator called here would be captured.
template <class Number>
bool are_below(const at::Tensor& tensor, std::int64_t end) {
  const auto* const first = tensor.const_data_ptr<Number>();
  const bool table = tensor.dim() == 2;
  const std::int64_t columns = tensor.dim() == 0 ? 1 : tensor.size(-1);
  const std::int64_t to_next = tensor.dim() == 0 ? 0 : tensor.stride(-1);
  for (std::int64_t row = 0; row < (table ? tensor.size(0) : 1); ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto number =
          static_cast<std::int64_t>(first[(table ? row * tensor.stride(0) : 0) + column * to_next]);
      if (number < 0 || number >= end) {
        return false;
      }
    }
  }
  return true;
}

/// Checks only tensors of whole numbers with at most two dimensions; LibTorch itself rejects the
/// others.
void require_below(const at::Tensor& tensor, std::int64_t end, std::string_view what) {
  const bool good = tensor.dim() > 2 || tensor.is_meta() ||
                    (tensor.scalar_type() == at::kLong  ? are_below<std::int64_t>(tensor, end)
                     : tensor.scalar_type() == at::kInt ? are_below<std::int32_t>(tensor, end)
                                                        : true);
  if (!good) {
    throw Error(Errc::CompileShape, fmt::format("expected {} from 0 to below {}", what, end));
  }
}

/// LibTorch uses a label as an index.
void check_ctc_loss(const torch::jit::Stack& arguments) {
  const at::Tensor& odds = arguments.at(0).toTensor();
  if (odds.dim() > 0) {
    require_below(arguments.at(1).toTensor(), odds.size(-1), "labels");
  }
}

/// LibTorch relies on the sum of the counts, which may overflow.
template <std::size_t Position>
void check_repeats(const torch::jit::Stack& arguments) {
  require_below(arguments.at(Position).toTensor(), std::int64_t{1} << 31U, "counts of repeats");
}

constexpr std::array<std::pair<std::string_view, ArgumentCheck>, 10> kChecks{
    {{"aten::_weight_norm.", &check_weight_norm},
     {"aten::arange.start_out", &check_arange},
     {"aten::arange.start_step", &check_arange},
     {"aten::ctc_loss.IntList", &check_ctc_loss},
     {"aten::ctc_loss.Tensor", &check_ctc_loss},
     {"aten::embedding_bag.", &check_embedding_bag},
     {"aten::embedding_bag.padding_idx", &check_embedding_bag},
     {"aten::range.step", &check_arange},
     {"aten::repeat_interleave.Tensor", &check_repeats<0>},
     {"aten::repeat_interleave.self_Tensor", &check_repeats<1>}}};

}  // namespace

bool is_allowed_operator(const c10::OperatorName& name) {
  static const Names allowed = operators_of_list();
  return allowed.contains(
      fmt::format("{}.{}", name.name, name.overload_name.empty() ? "default" : name.overload_name));
}

bool is_allowed_in_script(std::string_view name) {
  static const Names allowed = script_names_of_list();
  return allowed.contains(std::string(name));
}

bool is_of_libtorch(std::string_view name) {
  return std::ranges::find(kNamespaces, name.substr(0, name.find("::"))) != kNamespaces.end();
}

std::optional<std::string> operator_refusal(const c10::OperatorName& name, ProgramOrigin origin) {
  if (is_allowed_operator(name)) {
    return std::nullopt;
  }
  const bool file = origin == ProgramOrigin::ModelFile;
  if (is_of_libtorch(name.name)) {
    return fmt::format(
        "the operator {} is not one that {} may call: it can reach files or foreign memory, or "
        "does "
        "not check its arguments; use the public operators of torch",
        c10::toString(name),
        file ? "a file" : "a program of another process");
  }
  if (file) {
    return fmt::format(
        "the operator {} is none of LibTorch's, and a file may call no others; write the model as "
        "a "
        "module of your program, which may call it",
        c10::toString(name));
  }
  return std::nullopt;  // AO-2
}

bool is_enumeration(const c10::Type& real_type) {
  const c10::TypeKind kind = without_optional(real_type).kind();
  return kind == c10::TypeKind::ScalarTypeType || kind == c10::TypeKind::LayoutType ||
         kind == c10::TypeKind::MemoryFormatType;
}

bool may_be_number(const c10::Type& real_type, std::int64_t number) {
  switch (without_optional(real_type).kind()) {
    case c10::TypeKind::ScalarTypeType:
      return number >= 0 && number < static_cast<std::int64_t>(at::ScalarType::Undefined) &&
             !c10::isQIntType(static_cast<at::ScalarType>(number));
    case c10::TypeKind::LayoutType:
      return number == static_cast<std::int64_t>(at::Layout::Strided);
    case c10::TypeKind::MemoryFormatType:
      return number >= 0 && number < static_cast<std::int64_t>(at::MemoryFormat::NumOptions);
    default:
      return true;
  }
}

ArgumentCheck argument_check(const c10::OperatorName& name) {
  const std::string full = fmt::format("{}.{}", name.name, name.overload_name);
  const auto* const found =
      std::ranges::find_if(kChecks, [&](const auto& check) { return check.first == full; });
  return found == kChecks.end() ? nullptr : found->second;
}

}  // namespace stagecraft
