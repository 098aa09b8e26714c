#include "stagecraft/compiler/module/split_batch.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/StringUtil.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft {
namespace {

void check_batch_tensor(const at::Tensor& tensor, std::string_view what, std::size_t position) {
  if (const std::string fault = why_unusable(tensor); !fault.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} tensor {} {}; a batch has dense tensors on {}: convert it first "
                            "(to_dense, dequantize, cpu)",
                            what,
                            position,
                            fault,
                            kProgramDeviceName));
  }
  if (tensor.requires_grad()) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} tensor {} requires a gradient, which a batch does not get; pass "
                            "tensor.detach()",
                            what,
                            position));
  }
}

/// Returns part `m` of a tensor that is split into parts of `rows` rows.
at::Tensor rows_of_part(const at::Tensor& tensor, std::int64_t rows, std::size_t m) {
  return tensor.narrow(0, static_cast<std::int64_t>(m) * rows, rows);
}

}  // namespace

std::vector<BatchSlice> slices_of(const Batch& batch, int microbatches, std::string_view what) {
  std::vector<BatchSlice> slices;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [tensor, whole, name] = batch[i];
    check_batch_tensor(tensor, what, i);
    if (!whole && tensor.dim() == 0) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("{} tensor {} cannot be split into microbatches: it has no dimension 0; pass "
                      "sc::replicated(t) to give it whole to every microbatch",
                      what,
                      i));
    }
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    if (!whole) {
      if (sizes[0] == 0) {
        throw Error(
            Errc::CompileShape,
            fmt::format(
                "{} tensor {} has no rows; the example batch must be as large as those of training",
                what,
                i));
      }
      if (sizes[0] % microbatches != 0) {
        throw Error(Errc::CompileShape,
                    fmt::format("{} microbatches do not divide the batch: {} tensor {} has {}; "
                                "choose a count that divides it, or pad the batch",
                                microbatches,
                                what,
                                i,
                                count_text(sizes[0], "row")));
      }
      sizes[0] /= microbatches;
    }
    const at::Tensor part = whole ? tensor : rows_of_part(tensor, sizes[0], 0);
    slices.push_back({std::move(sizes), tensor.scalar_type(), whole, memory_order_of(part)});
  }
  return slices;
}

std::vector<BatchSlice> slices_of_part(const std::vector<at::Tensor>& part, const Batch& batch) {
  std::vector<BatchSlice> slices;
  for (std::size_t i = 0; i < part.size(); ++i) {
    slices.push_back({part[i].sizes().vec(),
                      part[i].scalar_type(),
                      batch[i].replicated,
                      memory_order_of(part[i])});
  }
  return slices;
}

void check_batch(const Batch& batch,
                 const std::vector<BatchSlice>& expected,
                 int microbatches,
                 std::string_view what) {
  if (batch.size() != expected.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the program was compiled with {} {} tensors, this batch has {}; pass "
                            "as many, in the same order",
                            expected.size(),
                            what,
                            batch.size()));
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const BatchSlice& slice = expected[i];
    const at::Tensor& tensor = batch[i].tensor;
    check_batch_tensor(tensor, what, i);
    std::vector<std::int64_t> whole = slice.sizes;
    if (!slice.replicated) {
      whole[0] *= microbatches;
    }
    if (tensor.sizes() != at::IntArrayRef(whole) || tensor.scalar_type() != slice.dtype ||
        batch[i].replicated != slice.replicated) {
      throw Error(
          Errc::CompileShape,
          fmt::format("{} tensor {} was compiled as {} of shape [{}]{} ({} microbatches), "
                      "this batch has {} of shape [{}]{}; pass the same shape and dtype, or "
                      "compile again",
                      what,
                      i,
                      type_text(slice.dtype),
                      fmt::join(whole, ", "),
                      slice.replicated ? " (replicated)" : "",
                      microbatches,
                      type_text(tensor.scalar_type()),
                      fmt::join(tensor.sizes(), ", "),
                      batch[i].replicated ? " (replicated)" : ""));
    }
  }
}

at::Tensor microbatch_of(const BatchTensor& given,
                         const BatchSlice& slice,
                         std::size_t m,
                         HostMemory memory) {
  // Copies made in inference mode could not be differentiated through.
  const c10::InferenceMode no_inference(false);
  return copied_in_order(
      slice.replicated ? given.tensor : rows_of_part(given.tensor, slice.sizes[0], m),
      slice.order,
      memory);
}

std::vector<std::vector<at::Tensor>> split_batch(const Batch& batch,
                                                 const std::vector<BatchSlice>& expected,
                                                 int microbatches,
                                                 std::string_view what,
                                                 HostMemory memory) {
  check_batch(batch, expected, microbatches, what);
  std::vector<std::vector<at::Tensor>> parts(static_cast<std::size_t>(microbatches));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    for (std::size_t m = 0; m < parts.size(); ++m) {
      const bool shared = m > 0 && expected[i].replicated;
      parts[m].push_back(shared ? parts[0].back()
                                : microbatch_of(batch[i], expected[i], m, memory));
    }
  }
  return parts;
}

std::string why_unusable(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "is undefined";
  }
  if (tensor.is_nested() || tensor.layout() != at::kStrided) {
    return fmt::format("is {}",
                       tensor.is_nested() ? "nested" : c10::str("of layout ", tensor.layout()));
  }
  if (tensor.is_quantized()) {
    return fmt::format("is quantized ({})", type_text(tensor.scalar_type()));
  }
  if (!is_program_device(tensor.device())) {
    return fmt::format("is on the device {}", tensor.device().str());
  }
  return "";
}

}  // namespace stagecraft
