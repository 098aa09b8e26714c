/// schedule_hash returns a number that is equal for two schedules if they give the workers the same
/// lists.
#pragma once

#include <cstdint>
#include <string_view>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns the FNV-1a hash, 64 bits, of `text`.
[[nodiscard]] std::uint64_t fnv1a(std::string_view text);

/// Returns the FNV-1a hash of the list form: tasks joined by one space, rows by a newline. Bubbles
/// and headers do not count, so an array and its list have the same hash.
[[nodiscard]] std::uint64_t schedule_hash(const Schedule& schedule);

}  // namespace stagecraft
