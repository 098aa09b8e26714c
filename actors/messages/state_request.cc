#include "stagecraft/actors/messages/state_request.h"

#include <exception>

#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {

StateRequest::~StateRequest() {
  try {
    transport_.advance(plan_of_states(plan_),
                       Epoch(number_.value + 1),
                       Error(Errc::WorkerAborted, "the transfer of this state has ended"));
  } catch (const std::exception& error) {  // it costs memory, and no state
    log(Level::Warning, "tensors of a state stay in memory", {{"why", error.what()}});
  }
}

Future<at::Tensor> StateRequest::receive(Rank from, std::size_t index) const {
  return transport_.receive(from, state_tag(plan_, number_, index));
}

}  // namespace stagecraft
