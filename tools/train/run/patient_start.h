/// start_patiently puts another worker in the place of a lost one, and tries again while it cannot
/// start: the host of a lost worker may be booting.
///
/// RunRecovery calls it on the run's thread.
#pragma once

#include <chrono>
#include <functional>

#include "stagecraft/base/clock.h"

namespace stagecraft::tools {

/// Calls `start`, and again after a pause while it fails with ClusterMember, until the patience is
/// over or `ends` says that the run is to end. Pauses grow from 0.1 s to 5 s.
/// Errors: the last of `start`.
void start_patiently(const std::function<void()>& start,
                     std::chrono::nanoseconds patience,
                     const std::function<bool()>& ends,
                     const Clock& clock);

}  // namespace stagecraft::tools
