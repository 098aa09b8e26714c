#include "stagecraft/actors/launch/launcher.h"

#include <cstdint>
#include <random>

namespace stagecraft {

PlanId Launcher::new_plan_id() {
  std::random_device source;
  const auto half = [&source] { return static_cast<std::uint64_t>(source()); };
  return PlanId(half() << 32U | half());
}

}  // namespace stagecraft
