/// CommAction: what a row does beside its tasks: sends, receives, and the gathering and reducing of
/// a stage's parameters.
///
/// A file that lists communication is read into these; validate() judges them (V31 and V35, and
/// sharding by V24 to V26), a writer makes them anew. Our own lowering derives its transfers from
/// the tasks. A value.
/// LC-1: the actions of a row stand in the order in which the row issues them.
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

/// `position` tasks or groups of its row come before it.
struct CommAction {
  CommKind kind = CommKind::SendForward;
  StageId stage;
  Microbatch microbatch;  ///< 0 for the three that belong to a whole stage
  int row = 0;
  int position = 0;

  friend bool operator==(const CommAction&, const CommAction&) = default;
};

/// Whether the kind moves one microbatch's value; the others belong to a whole stage.
[[nodiscard]] bool is_transfer(CommKind kind);
/// Returns "SEND_F" to "REDUCE_GRAD".
[[nodiscard]] std::string_view to_string(CommKind kind);
/// Returns "0SEND_F3" or "1UNSHARD".
[[nodiscard]] std::string to_string(const CommAction& action);

}  // namespace stagecraft
