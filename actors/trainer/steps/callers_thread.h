/// OnCallersThread sets up the thread of a trainer's caller, on which the trainer copies tensors.
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/ParallelGuard.h>

#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

/// While an OnCallersThread lives, its thread works without gradients, and without a thread pool
/// that would outlive the work (compiler/libtorch/thread_count.h). The end of the process waits for
/// it.
struct OnCallersThread {
  process_end::AtWork at_work;
  at::NoGradGuard no_grad;
  c10::ParallelGuard alone{true};
};

}  // namespace stagecraft
