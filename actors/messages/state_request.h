/// StateRequest is a read or a write of state, at the end that receives its tensors. When it ends,
/// what was not received is dropped, and so is what comes later: a rank that was lost in the midst
/// leaves nothing in the transport.
///
/// Its owner uses it on one thread and keeps the transport alive.
#pragma once

#include <cstddef>

#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class StateRequest {
 public:
  StateRequest(Transport& transport, PlanId plan, Submission number)
      : transport_(transport), plan_(plan), number_(number) {}
  StateRequest(const StateRequest&) = delete;
  StateRequest& operator=(const StateRequest&) = delete;
  ~StateRequest();

  /// Receives the `index`-th tensor that `from` sends.
  [[nodiscard]] Future<at::Tensor> receive(Rank from, std::size_t index) const;

 private:
  Transport& transport_;
  const PlanId plan_;
  const Submission number_;
};

}  // namespace stagecraft
