/// recovery_advice names the calls that restore weights after a failed update or a lost worker.
/// Errors about such weights carry it (Error::advise).
#pragma once

#include <string_view>

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Returns "trainer.load(file)"; recover() before it if that restores the state of any one rank:
/// neighbors keep copies (TrainerOptions::mirror), or every stage has copies.
constexpr std::string_view recovery_advice(bool recovers) {
  return recovers ? "trainer.recover() or trainer.load(file)" : "trainer.load(file)";
}

/// Return whether every stage of the program, and whether any, is on at least two ranks. Ranks that
/// share what they hold, or divide weights of which there is one copy, are no copies:
/// every_stage_has_copies() is then false. The last rank of a plan with a driver's row has no state
/// to lose.
[[nodiscard]] bool every_stage_has_copies(const Plan& plan, bool has_driver_row = false);
[[nodiscard]] bool any_stage_has_copies(const Plan& plan);

}  // namespace stagecraft
