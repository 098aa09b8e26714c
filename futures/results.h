/// Results: values of a worker that outlive the step that made them (losses), by reference id.
///
/// The plan thread holds a value at the end of a step; the agent actor takes it when somebody asks,
/// and releases it when the last handle is gone, while the plan thread is computing the next step.
/// The mutex guards the table and the byte count; tensors are destroyed outside it.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/ref.h"

namespace stagecraft {

class Results {
 public:
  /// Keeps `tensor` until it is taken or released.
  /// Errors: Internal when `id` is in use or the tensor undefined.
  void hold(RefId id, at::Tensor tensor);

  /// Returns the value and forgets it.
  /// Errors: WorkerLost when there is none of that name (released, taken, or dropped by clear).
  [[nodiscard]] at::Tensor take(RefId id);

  /// Forgets the value; false when there is none, which is no error: it may have been taken.
  bool release(RefId id);

  /// Sum of nbytes of all values held.
  [[nodiscard]] std::int64_t bytes() const;

  void clear();

 private:
  [[nodiscard]] at::Tensor remove(RefId id);

  mutable std::mutex mutex_;
  std::unordered_map<RefId, at::Tensor> values_;
  std::int64_t bytes_ = 0;
};

}  // namespace stagecraft
