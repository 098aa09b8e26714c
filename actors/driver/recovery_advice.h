/// recovery_advice: how a program makes weights good again (base/advice.h).
#pragma once

#include <string_view>

namespace stagecraft {

/// Returns "trainer.load(file)"; if neighbors keep copies (TrainerOptions::mirror), recover()
/// before it.
constexpr std::string_view recovery_advice(bool mirrored) {
  return mirrored ? "trainer.recover() or trainer.load(file)" : "trainer.load(file)";
}

}  // namespace stagecraft
