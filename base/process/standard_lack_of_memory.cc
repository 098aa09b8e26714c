#include "stagecraft/base/process/standard_lack_of_memory.h"

#include <new>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace stagecraft {

std::optional<Error> standard_lack_of_memory(const std::exception& thrown,
                                             std::string_view what_to_do) {
  const auto ran_out = [&](std::string_view when) {
    return Error(Errc::DeviceOutOfMemory, fmt::format("memory ran out{}: {}", when, what_to_do));
  };
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
      dynamic_cast<const std::length_error*>(&thrown) != nullptr) {
    return ran_out("");
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&thrown)) {
    const std::error_condition what = system->code().default_error_condition();
    if (what == std::errc::not_enough_memory || what == std::errc::resource_unavailable_try_again) {
      return ran_out(" when a thread was to be made");
    }
  }
  return std::nullopt;
}

bool says_lack_of_memory(std::string_view what) {
  return what.starts_with("[enforce fail at alloc_cpu.cpp") ||
         what.starts_with("Could not allocate memory") ||
         what.starts_with("Storage size calculation overflowed");  // more than 2^63 bytes
}

}  // namespace stagecraft
