/// recovery_advice: the calls that make weights good again which are undefined or went with a
/// worker. Errors about such weights carry it (Error::advise).
#pragma once

#include <string_view>

namespace stagecraft {

/// Returns "trainer.load(file)"; if neighbors keep copies (TrainerOptions::mirror), recover()
/// before it.
constexpr std::string_view recovery_advice(bool mirrored) {
  return mirrored ? "trainer.recover() or trainer.load(file)" : "trainer.load(file)";
}

}  // namespace stagecraft
