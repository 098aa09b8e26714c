#include "stagecraft/compiler/libtorch/foreign_failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "stagecraft/compiler/libtorch/lack_of_memory.h"

namespace stagecraft {

std::string foreign_text(const std::exception& thrown) {
  const auto* torch = dynamic_cast<const c10::Error*>(&thrown);
  return torch != nullptr ? torch->what_without_backtrace() : thrown.what();
}

Error foreign_failure(const std::exception& thrown, Errc code, std::string_view doing) {
  if (const auto lack = lack_of_memory(thrown)) {
    return *lack;
  }
  return {code, fmt::format("{}: {}", doing, foreign_text(thrown))};
}

}  // namespace stagecraft
