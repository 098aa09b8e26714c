/// schedule_hash returns one number that tells whether two schedules give the workers the same
/// lists.
#pragma once

#include <cstdint>
#include <string_view>

#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Returns FNV-1a, 64 bits, of `text`.
[[nodiscard]] std::uint64_t fnv1a(std::string_view text);

/// Returns FNV-1a over the list form: tasks joined by one space, rows by a newline. Bubbles and
/// headers do not count, so an array and its list have the same hash.
[[nodiscard]] std::uint64_t schedule_hash(const Schedule& schedule);

}  // namespace stagecraft
