/// What makes weights good again that are undefined or went with a worker: what every error about
/// them closes with.
#pragma once

#include <string_view>

namespace stagecraft {

/// "trainer.load(file)", and where neighbours keep copies (TrainerOptions::mirror) recover() before
/// it.
constexpr std::string_view way_back(bool mirrored) {
  return mirrored ? "trainer.recover() or trainer.load(file)" : "trainer.load(file)";
}

}  // namespace stagecraft
