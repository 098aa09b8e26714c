/// recovery_advice names the calls that restore weights after a failed update or a lost worker.
/// Errors about such weights carry it (Error::advise).
#pragma once

#include <string_view>

namespace stagecraft {

/// Returns "trainer.load(file)"; if neighbors keep copies (TrainerOptions::mirror), recover()
/// before it.
constexpr std::string_view recovery_advice(bool mirrored) {
  return mirrored ? "trainer.recover() or trainer.load(file)" : "trainer.load(file)";
}

}  // namespace stagecraft
