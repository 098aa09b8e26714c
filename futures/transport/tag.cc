#include "stagecraft/futures/transport/tag.h"

#include <fmt/format.h>

namespace stagecraft {

std::string to_string(const Tag& tag) {
  return fmt::format("edge {}, microbatch {}, submission {}, epoch {}, plan {}",
                     tag.edge.value,
                     tag.microbatch.value,
                     tag.submission.value,
                     tag.epoch.value,
                     tag.plan.value);
}

}  // namespace stagecraft
