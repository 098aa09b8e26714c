#include "stagecraft/tests/simulate/story.h"

#include <chrono>

#include <fmt/format.h>

namespace stagecraft::simulation {

std::string Story::text() const {
  std::string text;
  for (const Event& event : events_) {
    text += fmt::format("{:>12.3f} ms  {:<8}  {}\n",
                        std::chrono::duration<double, std::milli>(event.when).count(),
                        event.who,
                        event.what);
  }
  return text;
}

}  // namespace stagecraft::simulation
