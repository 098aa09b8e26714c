#include "stagecraft/compiler/program/pass_time.h"

#include <fmt/format.h>

namespace stagecraft {

std::string to_string(const std::vector<PassTime>& times, std::string_view did) {
  if (times.empty()) {
    return {};
  }
  double total = 0;
  std::string lines;
  for (const PassTime& pass : times) {
    total += pass.seconds;
    lines += fmt::format("{:>10.1f} ms  {}\n", pass.seconds * 1e3, pass.name);
  }
  return fmt::format("{} in {:.1f} ms:\n{}", did, total * 1e3, lines);
}

}  // namespace stagecraft
