/// count_text says how many things there are, in the words of a message: "1 stage", "2 stages".
/// Messages and reports of all layers use it where a count may be one. Any thread may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

/// Returns the count and the noun, in the plural unless the count is one: "1 copy", "0 copies".
/// `noun`: in the singular, e.g. "microbatch", "edge of data".
[[nodiscard]] std::string count_text(std::int64_t count, std::string_view noun);
[[nodiscard]] inline std::string count_text(std::size_t count, std::string_view noun) {
  return count_text(static_cast<std::int64_t>(count), noun);
}
[[nodiscard]] inline std::string count_text(int count, std::string_view noun) {
  return count_text(std::int64_t{count}, noun);
}

/// Returns the plural of the noun: "copies", "branches", "edges of data".
[[nodiscard]] std::string plural_of(std::string_view noun);

}  // namespace stagecraft
