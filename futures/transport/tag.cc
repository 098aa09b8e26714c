#include "stagecraft/futures/transport/tag.h"

#include <fmt/format.h>

namespace stagecraft {

std::string to_string(const Tag& tag) {
  std::string text = fmt::format("edge {}, microbatch {}, step {}, epoch {}",
                                 tag.edge.value,
                                 tag.microbatch.value,
                                 tag.step.value,
                                 tag.epoch.value);
  if (tag.replica != 0) {
    text += fmt::format(", replica {}", tag.replica);
  }
  return text;
}

}  // namespace stagecraft
