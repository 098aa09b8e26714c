/// CommAction is an action of a row in addition to its tasks: a send, a receive, or the gathering
/// or reducing of a stage's parameters.
///
/// A reader makes them from a file that lists communication. validate() judges them (V31 and V35;
/// V24 to V26 for sharding), and a writer makes them again. Our own lowering derives its transfers
/// from the tasks. A value.
/// LC-1: the actions of a row are in the order in which the row issues them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "stagecraft/base/ids.h"

namespace stagecraft {

enum class CommKind : std::uint8_t {
  SendForward,
  RecvForward,
  SendBackward,
  RecvBackward,
  Unshard,
  Reshard,
  ReduceGrad
};

inline constexpr std::array kCommKinds{CommKind::SendForward,
                                       CommKind::RecvForward,
                                       CommKind::SendBackward,
                                       CommKind::RecvBackward,
                                       CommKind::Unshard,
                                       CommKind::Reshard,
                                       CommKind::ReduceGrad};

/// CommAction is at a place of its row: `position` tasks or groups of the row come before it.
struct CommAction {
  CommKind kind = CommKind::SendForward;
  StageId stage;
  Microbatch microbatch;  ///< 0 for the three kinds that belong to a whole stage
  int row = 0;
  int position = 0;

  friend bool operator==(const CommAction&, const CommAction&) = default;
};

/// Returns whether the kind moves the value of one microbatch. The others belong to a whole stage.
[[nodiscard]] bool is_transfer(CommKind kind);
/// Returns "SEND_F" to "REDUCE_GRAD".
[[nodiscard]] std::string_view to_string(CommKind kind);
/// Returns "0SEND_F3" or "1UNSHARD".
[[nodiscard]] std::string to_string(const CommAction& action);

}  // namespace stagecraft
