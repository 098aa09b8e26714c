/// end_now ends a worker process at once, from any of its threads.
#pragma once

#include <memory>

#include "stagecraft/actors/security/temporary_credentials.h"

namespace stagecraft {

/// Removes the credentials that the driver sent on the lifeline, if it sent any, and ends the
/// process: no destructor runs, because other threads are still at work.
[[noreturn]] void end_now(const std::shared_ptr<const TemporaryCredentials>& handed_over,
                          int status);

}  // namespace stagecraft
