/// AutocastGuard restores the autocast state of a type of device when it is destroyed. Replays and
/// graphs of models from files use it.
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
  explicit AutocastGuard(c10::DeviceType type = kProgramDevice)
      : type_(type), before_(now(type)), cache_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastGuard() {
    set(before_, type_);
    at::autocast::set_autocast_cache_enabled(cache_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

  [[nodiscard]] static Autocast now(c10::DeviceType type = kProgramDevice) {
    return {.enabled = at::autocast::is_autocast_enabled(type),
            .dtype = at::autocast::get_autocast_dtype(type)};
  }
  static void set(const Autocast& state, c10::DeviceType type = kProgramDevice) {
    at::autocast::set_autocast_enabled(type, state.enabled);
    at::autocast::set_autocast_dtype(type, state.dtype);
  }

 private:
  c10::DeviceType type_;
  Autocast before_;
  bool cache_;
};

}  // namespace stagecraft
