#include "stagecraft/compiler/capture/operator_traits.h"

#include <algorithm>
#include <array>
#include <string>

#include "stagecraft/compiler/capture/boxed_call.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/native/native_code.h"

namespace stagecraft {
namespace {

constexpr std::string_view kIndex = "aten::index";

/// This operator is composite, so it lacks the tag of the inner operator that reads the counts.
bool repeats_by_tensor(const c10::OperatorHandle& op) {
  return op.operator_name().name == "aten::repeat_interleave" &&
         op.operator_name().overload_name == "self_Tensor";
}

/// HiddenWrite names an operator that writes arguments without a mark in its schema: the running
/// statistics, while it trains.
struct HiddenWrite {
  std::string_view name;
  std::array<std::size_t, 2> written;
  std::size_t only_if;
};
constexpr std::array kHiddenWrites{
    HiddenWrite{"aten::batch_norm", {3, 4}, 5},
    HiddenWrite{"aten::native_batch_norm", {3, 4}, 5},
    HiddenWrite{"aten::_batch_norm_impl_index", {3, 4}, 5},
    HiddenWrite{"aten::instance_norm", {3, 4}, 5},
};

constexpr std::string_view kOneHot = "aten::one_hot";

bool is_mask(const c10::IValue& index) {
  bool mask = false;
  for_each_tensor(index, [&](const at::Tensor& t) {
    mask = mask || t.scalar_type() == at::kBool || t.scalar_type() == at::kByte;
  });
  return mask;
}

}  // namespace

std::vector<std::size_t> written_arguments(const c10::OperatorHandle& op,
                                           const std::vector<c10::IValue>& arguments) {
  std::vector<std::size_t> written;
  const auto& declared = op.schema().arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].alias_info() != nullptr && declared[i].alias_info()->isWrite()) {
      written.push_back(i);
    }
  }
  for (const HiddenWrite& h : kHiddenWrites) {
    if (op.schema().name() == h.name && arguments[h.only_if].isBool() &&
        arguments[h.only_if].toBool()) {
      written.insert(written.end(), h.written.begin(), h.written.end());
    }
  }
  return written;
}

bool draws_random_numbers(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) {
    return false;
  }
  const auto& declared = op.schema().arguments();
  const std::size_t first = stack.size() - declared.size();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = declared[i].name();
    const c10::IValue& value = stack[first + i];
    const bool off = (name == "p" || name == "dropout_p" || name == "dropout") &&
                     value.isDouble() && value.toDouble() == 0.0;
    const bool evaluating =
        (name == "train" || name == "training") && value.isBool() && !value.toBool();
    if (off || evaluating) {
      return false;
    }
  }
  return true;
}

std::optional<std::size_t> generator_argument(const c10::OperatorHandle& op) {
  const auto& declared = op.schema().arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].name() == "generator") {
      return i;
    }
  }
  return std::nullopt;
}

bool reads_values_inside(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::data_dependent_output) ||
         op.schema().name() == "aten::_local_scalar_dense";
}

bool reads_values(const c10::OperatorHandle& op) {
  return reads_values_inside(op) || op.schema().name() == "aten::item" ||
         op.schema().name() == "aten::is_nonzero";
}

bool shape_depends_on_values(const c10::OperatorHandle& op,
                             const std::vector<c10::IValue>& arguments) {
  if (op.schema().name() == kIndex) {
    return is_mask(arguments[1]);  // tagged, but only masks make the shape depend on values
  }
  if (op.schema().name() == kOneHot) {
    return arguments[1].toInt() < 0;  // then the number of classes depends on the values
  }
  return op.hasTag(at::Tag::dynamic_output_shape) || repeats_by_tensor(op);
}

std::optional<std::size_t> shaping_argument(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name == kIndex || name == "aten::masked_select" || repeats_by_tensor(op)
             ? std::optional<std::size_t>(1)
             : std::nullopt;
}

bool shapes(const c10::OperatorHandle& op, const at::Tensor& tensor) {
  return op.schema().name() != kIndex || tensor.scalar_type() == at::kBool ||
         tensor.scalar_type() == at::kByte;
}

bool checks_what_it_reads(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{kOneHot,
                                                    kEqual,
                                                    "aten::multinomial",
                                                    "aten::ctc_loss",
                                                    "aten::linalg_solve",
                                                    "aten::linalg_inv",
                                                    "aten::inverse",
                                                    "aten::linalg_cholesky",
                                                    "aten::cholesky",
                                                    "aten::linalg_matrix_exp",
                                                    "aten::matrix_exp"};
  return name == kNativeOperator || name == kDriverOperator ||
         std::ranges::find(kNames, name) != kNames.end();
}

bool compares_with_itself(const c10::OperatorHandle& op,
                          const std::vector<c10::IValue>& arguments) {
  return op.schema().name() == kEqual && arguments[0].toTensor().unsafeGetTensorImpl() ==
                                             arguments[1].toTensor().unsafeGetTensorImpl();
}

bool compares_floats(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  return op.schema().name() == kEqual && arguments[0].toTensor().is_floating_point() &&
         arguments[1].toTensor().is_floating_point();
}

}  // namespace stagecraft
