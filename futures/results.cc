#include "stagecraft/futures/results.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

void Results::hold(RefId id, at::Tensor tensor) {
  SC_CHECK(tensor.defined(), fmt::format("value {} is undefined", id.value));
  const std::scoped_lock lock(mutex_);
  SC_CHECK(!values_.contains(id),
           fmt::format("value {} is held already: a reference names one value", id.value));
  bytes_ += static_cast<std::int64_t>(tensor.nbytes());
  values_[id] = std::move(tensor);
}

at::Tensor Results::take(RefId id) {
  at::Tensor tensor = remove(id);
  if (!tensor.defined()) {
    throw Error(
        Errc::WorkerLost,
        fmt::format("value {} is not here: it was taken or released before, or lost with its step",
                    id.value));
  }
  return tensor;
}

bool Results::release(RefId id) {
  return remove(id).defined();
}

std::int64_t Results::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

void Results::clear() {
  std::unordered_map<RefId, at::Tensor> dropped;
  const std::scoped_lock lock(mutex_);
  dropped.swap(values_);
  bytes_ = 0;
}

at::Tensor Results::remove(RefId id) {
  const std::scoped_lock lock(mutex_);
  const auto node = values_.extract(id);
  if (node.empty()) {
    return {};
  }
  at::Tensor tensor = std::move(node.mapped());
  bytes_ -= static_cast<std::int64_t>(tensor.nbytes());
  return tensor;
}

}  // namespace stagecraft
