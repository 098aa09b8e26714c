#include "stagecraft/compiler/module/registered.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/compiler/libtorch/shares_memory.h"
#include "stagecraft/compiler/module/split_batch.h"

namespace stagecraft::internal {
namespace {

void check_usable(const std::vector<NamedTensor>& tensors, std::string_view what) {
  for (const NamedTensor& t : tensors) {
    if (const std::string fault = why_unusable(t.tensor); !fault.empty()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("the {} {} {}; a program computes with dense tensors on {}: convert "
                              "it to one first",
                              what,
                              t.name,
                              fault,
                              kProgramDeviceName));
    }
  }
}

void refuse_shared_memory(const std::vector<NamedTensor>& parameters,
                          const std::vector<NamedTensor>& buffers) {
  struct Registered {
    std::string_view kind;
    const NamedTensor* named;
    MemoryRange range;
  };
  std::vector<Registered> all;
  for (const NamedTensor& parameter : parameters) {
    all.push_back({"parameter", &parameter, memory_range_of(parameter.tensor)});
  }
  for (const NamedTensor& buffer : buffers) {
    all.push_back({"buffer", &buffer, memory_range_of(buffer.tensor)});
  }
  std::ranges::stable_sort(all, {}, [](const Registered& r) { return r.range.begin; });
  for (auto one = all.begin(); one != all.end(); ++one) {
    for (auto other = one + 1; other != all.end() && other->range.begin < one->range.end; ++other) {
      const at::Tensor& a = one->named->tensor;
      const at::Tensor& b = other->named->tensor;
      if (!a.is_same(b) && shares_memory(a, b)) {
        throw Error(
            Errc::UsageArgument,
            fmt::format(
                "the {} {} and the {} {} are two tensors that share memory, and would become two "
                "copies: to tie them, register the same tensor twice (register_parameter(\"tied\", "
                "a->weight)), or compute with one of them alone; else give each its own memory "
                "with clone()",
                one->kind,
                one->named->name,
                other->kind,
                other->named->name));
      }
    }
  }
}

}  // namespace

std::vector<NamedTensor> without_aliases(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> result;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const NamedTensor& t : tensors) {
    if (t.tensor.defined() && seen.insert(t.tensor.unsafeGetTensorImpl()).second) {
      result.push_back(t);
    }
  }
  return result;
}

void check_registered(const std::vector<NamedTensor>& parameters,
                      const std::vector<NamedTensor>& buffers) {
  check_usable(parameters, "parameter");
  check_usable(buffers, "buffer");
  refuse_shared_memory(parameters, buffers);
}

}  // namespace stagecraft::internal
