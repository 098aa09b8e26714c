/// build_fingerprint identifies a build, so that two processes of a cluster detect that they differ
/// (HE-1). Both ends compare.
#pragma once

#include <string>

#include "stagecraft/actors/messages/process_messages.h"

namespace stagecraft {

/// Returns the properties that two processes of a cluster must have in common: versions of
/// Stagecraft, LibTorch, compiler and the layout of all messages. "stagecraft 0.1.0, LibTorch
/// 2.11.0, ..., messages 1f03a9c2".
[[nodiscard]] std::string build_fingerprint();

/// Returns the reason why the two processes cannot work together, as a clause; empty if both have
/// the same build.
[[nodiscard]] std::string refusal_of(const Hello& worker, const Welcome& driver);

/// Returns the refusal in `driver`, with the build of each. Both ends use these words.
[[nodiscard]] std::string refusal_text(const Hello& worker, const Welcome& driver);

}  // namespace stagecraft
