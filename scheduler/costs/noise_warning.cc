#include "stagecraft/scheduler/costs/noise_warning.h"

#include <fmt/format.h>

namespace stagecraft {

std::optional<std::string> noise_warning(double noise, double most) {
  if (noise <= most) {
    return std::nullopt;
  }
  return fmt::format(
      "the costs were measured with a noise of {:.0f} %, and at most {:.0f} % is good: a step may "
      "take much longer or shorter than predicted; profile again while the machine is idle",
      100 * noise,
      100 * most);
}

}  // namespace stagecraft
