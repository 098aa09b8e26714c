/// ClockReading holds a time of the steady clock and names that clock. To compare the times of two
/// processes, add an offset that brings the times of one into the clock of the other.
///
/// CLK-1: steady clocks of one domain (one boot and one time namespace) are the same clock. For
///        clocks of different domains nothing is assumed: a question and its answer measure the
///        offset.
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft {

struct ClockReading {
  std::string domain;  ///< empty if the system does not name it; an empty domain equals no other
  std::int64_t nanoseconds = 0;
};

template <class V>
decltype(auto) visit_fields(ClockReading& m, V&& v) {
  return v(m.domain, m.nanoseconds);
}

[[nodiscard]] ClockReading read_clock();

/// Returns the middle between two times.
[[nodiscard]] std::int64_t halfway(std::int64_t begin, std::int64_t end);

/// Returns the number that turns a time of their clock into a time of ours when it is added. In one
/// domain it is 0. In different domains the peer read `theirs` while it answered. The function
/// assumes that this happened in the middle between `asked` and `answered`, which are times of our
/// clock. The error is at most half the round trip.
[[nodiscard]] std::int64_t clock_offset(const ClockReading& theirs,
                                        const ClockReading& asked,
                                        std::int64_t answered);

}  // namespace stagecraft
