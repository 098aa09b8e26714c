#include "stagecraft/scheduler/model/communication.h"

#include <fmt/format.h>

namespace stagecraft {

bool is_transfer(CommKind kind) {
  return kind <= CommKind::RecvBackward;
}

std::string_view to_string(CommKind kind) {
  switch (kind) {
    case CommKind::SendForward:
      return "SEND_F";
    case CommKind::RecvForward:
      return "RECV_F";
    case CommKind::SendBackward:
      return "SEND_B";
    case CommKind::RecvBackward:
      return "RECV_B";
    case CommKind::Unshard:
      return "UNSHARD";
    case CommKind::Reshard:
      return "RESHARD";
    case CommKind::ReduceGrad:
      return "REDUCE_GRAD";
  }
  return "?";
}

std::string to_string(const CommAction& action) {
  return is_transfer(action.kind)
             ? fmt::format(
                   "{}{}{}", action.stage.value, to_string(action.kind), action.microbatch.value)
             : fmt::format("{}{}", action.stage.value, to_string(action.kind));
}

}  // namespace stagecraft
