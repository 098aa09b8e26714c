#include "stagecraft/actors/executor/run/regrouped.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

at::Tensor regrouped(const std::vector<at::Tensor>& tensors, const std::vector<RowRange>& rows) {
  std::vector<at::Tensor> parts;
  parts.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i];
    const auto& [first, count, of] = rows[i];
    if (tensor.dim() == 0 || tensor.size(0) % of != 0) {
      throw Error(Errc::PlanInvalid,
                  fmt::format("a tensor with {} rows cannot be taken as {} equal parts",
                              tensor.dim() == 0 ? 0 : tensor.size(0),
                              of));
    }
    const std::int64_t part = tensor.size(0) / of;
    parts.push_back(count == of ? tensor : tensor.narrow(0, first * part, count * part));
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 0);
}

}  // namespace stagecraft
