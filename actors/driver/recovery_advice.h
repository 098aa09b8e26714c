/// What makes weights good again that are undefined or went with a worker: what every error about
/// them closes with, in the calls of a program. Users of a command have no such calls: what is
/// logged leaves the advice out, and a command puts its own in its place.
#pragma once

#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Begins the advice, which ends the message.
inline constexpr std::string_view kToGoOn = "; to go on: ";

/// "trainer.load(file)", and where neighbours keep copies (TrainerOptions::mirror) recover() before
/// it.
constexpr std::string_view recovery_advice(bool mirrored) {
  return mirrored ? "trainer.recover() or trainer.load(file)" : "trainer.load(file)";
}

/// The error, and those that led to it, with `advice` in the place of theirs; empty: with none.
[[nodiscard]] Error with_advice(const Error& error, std::string_view advice);

}  // namespace stagecraft
