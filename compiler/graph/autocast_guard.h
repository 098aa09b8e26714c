/// AutocastGuard restores the autocast state of the program's device when it is destroyed. Replays
/// and graphs of models from files use it.
///
/// It also turns the autocast cache off. The cache is process-wide and outlives optimizer steps,
/// and it would add up a weight's gradients in the narrow type.
#pragma once

#include <ATen/autocast_mode.h>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {

class AutocastGuard {
 public:
  AutocastGuard() : before_(now()), cache_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastGuard() {
    set(before_);
    at::autocast::set_autocast_cache_enabled(cache_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

  [[nodiscard]] static Autocast now() {
    return {.enabled = at::autocast::is_autocast_enabled(kProgramDevice),
            .dtype = at::autocast::get_autocast_dtype(kProgramDevice)};
  }
  static void set(const Autocast& state) {
    at::autocast::set_autocast_enabled(kProgramDevice, state.enabled);
    at::autocast::set_autocast_dtype(kProgramDevice, state.dtype);
  }

 private:
  Autocast before_;
  bool cache_;
};

}  // namespace stagecraft
