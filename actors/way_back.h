/// The calls that make weights good again when they are undefined or were lost with a worker. Every
/// error about such weights ends with them.
#pragma once

#include <string_view>

namespace stagecraft {

/// Returns "trainer.load(file)". If neighbors keep copies (TrainerOptions::mirror), recover() comes
/// before it.
constexpr std::string_view way_back(bool mirrored) {
  return mirrored ? "trainer.recover() or trainer.load(file)" : "trainer.load(file)";
}

}  // namespace stagecraft
