#include "stagecraft/compiler/module/registered.h"

#include <unordered_set>

namespace stagecraft::internal {

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

}  // namespace stagecraft::internal
