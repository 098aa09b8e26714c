#include "stagecraft/compiler/lack_of_memory.h"

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace stagecraft {
namespace {

/// LibTorch has a type of its own for devices alone; on the CPU only words tell.
bool says_lack_of_memory(std::string_view text) {
  for (const std::string_view words : {"allocate memory",    // its allocator
                                       "not enough memory",  // likewise, elsewhere
                                       "Storage size calculation overflowed"}) {  // more than 2^63
    if (text.find(words) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

/// " at 123 bytes in one piece", or nothing.
std::string size_in(std::string_view text) {
  constexpr std::string_view kBefore = "you tried to allocate ";
  const std::size_t begin = text.find(kBefore);
  if (begin == std::string_view::npos) {
    return "";
  }
  text.remove_prefix(begin + kBefore.size());
  return fmt::format(" at {} bytes in one piece", text.substr(0, text.find(' ')));
}

/// Where it ran out; nothing when it did not.
std::optional<std::string> where_it_ran_out(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
      dynamic_cast<const std::length_error*>(&thrown) != nullptr) {
    return "";
  }
  if (const auto* torch = dynamic_cast<const c10::Error*>(&thrown)) {
    const std::string text = torch->what_without_backtrace();
    const bool lack =
        dynamic_cast<const c10::OutOfMemoryError*>(torch) != nullptr || says_lack_of_memory(text);
    return lack ? std::optional(size_in(text)) : std::nullopt;
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&thrown)) {
    const std::error_condition what = system->code().default_error_condition();
    if (what == std::errc::not_enough_memory || what == std::errc::resource_unavailable_try_again) {
      return " at a thread";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> lack_of_memory(const std::exception& thrown, std::string_view what_to_do) {
  const auto where = where_it_ran_out(thrown);
  if (!where) {
    return std::nullopt;
  }
  return Error(Errc::DeviceOutOfMemory, fmt::format("memory ran out{}: {}", *where, what_to_do));
}

}  // namespace stagecraft
