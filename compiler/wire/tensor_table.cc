#include "stagecraft/compiler/wire/tensor_table.h"

#include <cstddef>
#include <optional>
#include <string>

#include <ATen/ops/as_strided.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/check.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft::wire {
namespace {

/// Returns the number of elements from the first to the last; nothing if no tensor can have these
/// facts.
std::optional<std::int64_t> span_of(const TensorFacts& facts) {
  std::int64_t span = 1;
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(facts.dtype));
  bool empty = false;
  if (facts.sizes.size() != facts.strides.size()) {
    return std::nullopt;
  }
  for (std::size_t d = 0; d < facts.sizes.size(); ++d) {
    std::int64_t reach = 0;
    if (facts.sizes[d] < 0 || facts.strides[d] < 0 ||
        __builtin_mul_overflow(
            facts.sizes[d] > 0 ? facts.sizes[d] - 1 : 0, facts.strides[d], &reach) ||
        __builtin_add_overflow(span, reach, &span) ||
        __builtin_mul_overflow(bytes, facts.sizes[d] > 0 ? facts.sizes[d] : 1, &bytes)) {
      return std::nullopt;
    }
    empty = empty || facts.sizes[d] == 0;
  }
  return empty ? 0 : span;
}

at::Tensor laid_over(const Reader& in, const TensorFacts& facts, const at::Tensor& span) {
  const std::optional<std::int64_t> elements =
      c10::isQIntType(facts.dtype) ? std::nullopt : span_of(facts);
  if (!elements || (facts.wrapped_number && !facts.sizes.empty())) {
    in.refuse(fmt::format("no tensor of {} has the sizes [{}] and strides [{}]",
                          c10::toString(facts.dtype),
                          fmt::join(facts.sizes, ", "),
                          fmt::join(facts.strides, ", ")));
  }
  if (!span.defined() || span.scalar_type() != facts.dtype || span.dim() != 1 ||
      span.numel() != *elements || !span.is_contiguous()) {
    in.refuse(fmt::format("expected a tensor as {} elements of {} in one dimension, found {}",
                          *elements,
                          c10::toString(facts.dtype),
                          span.defined() ? fmt::format("{} of shape [{}]",
                                                       c10::toString(span.scalar_type()),
                                                       fmt::join(span.sizes(), ", "))
                                         : "none"));
  }
  const at::Tensor laid = span.detach().as_strided(facts.sizes, facts.strides);
  if (facts.wrapped_number) {
    laid.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return laid;
}

}  // namespace

std::string obstacle(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "it is undefined";
  }
  if (tensor.layout() != at::kStrided || tensor.is_nested()) {
    return "it is not dense";
  }
  if (tensor.is_quantized()) {
    return "it is quantized";
  }
  if (!is_program_device(tensor.device())) {
    return "it is not in the memory of this machine";
  }
  if (tensor.is_conj() || tensor.is_neg()) {
    return "it is a conjugate or negative view that was not computed; clone it";
  }
  return tensor.requires_grad() ? "it requires a gradient, which no constant has" : "";
}

std::uint64_t TensorTable::number_of(const at::Tensor& tensor) {
  const auto [entry, is_new] = numbers_.try_emplace(tensor.unsafeGetTensorImpl(), facts_.size());
  if (is_new) {
    SC_CHECK(obstacle(tensor).empty(), "a tensor that is sent has no obstacle");
    TensorFacts facts{.dtype = tensor.scalar_type(),
                      .sizes = tensor.sizes().vec(),
                      .strides = tensor.strides().vec(),
                      .wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number()};
    const std::optional<std::int64_t> span = span_of(facts);
    SC_CHECK(span, "a tensor exists, so its facts describe one");
    spans_.push_back(tensor.detach().as_strided({*span}, {1}));
    facts_.push_back(std::move(facts));
  }
  return entry->second;
}

std::vector<at::Tensor> laid_over(const Reader& in,
                                  const std::vector<TensorFacts>& facts,
                                  const std::vector<at::Tensor>& spans) {
  if (facts.size() != spans.size()) {
    in.refuse(fmt::format("expected {} tensors, found {}", facts.size(), spans.size()));
  }
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    tensors.push_back(laid_over(in, facts[i], spans[i]));
  }
  return tensors;
}

}  // namespace stagecraft::wire
