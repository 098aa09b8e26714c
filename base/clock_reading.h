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
  std::string domain;  ///< empty if the system does not tell; it then equals no other domain
  std::int64_t nanoseconds = 0;
};

template <class V>
decltype(auto) visit_fields(ClockReading& m, V&& v) {
  return v(m.domain, m.nanoseconds);
}

[[nodiscard]] ClockReading read_clock();

/// Returns the middle of a stretch of time.
[[nodiscard]] std::int64_t halfway(std::int64_t begin, std::int64_t end);

/// Returns the number to add to a time of their clock to get a time of ours. In one domain it is 0.
/// Otherwise the peer has read `theirs` while it answered. The function takes that moment for the
/// middle between `asked` and `answered`, which are times of our clock. The error is at most half
/// the round trip.
[[nodiscard]] std::int64_t clock_offset(const ClockReading& theirs,
                                        const ClockReading& asked,
                                        std::int64_t answered);

}  // namespace stagecraft
