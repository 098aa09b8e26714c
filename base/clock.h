/// ClockReading: what the steady clock says, and which steady clock that is. Where times of two
/// processes are compared, the one's are brought into the other's clock by an offset.
///
/// CLK-1: steady clocks of one domain, that is of one boot and one time namespace, are one clock.
///        Of others nothing is assumed: the offset is measured by a question and its answer.
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft {

struct ClockReading {
  std::string domain;  ///< empty where the system does not say: then it is like no other
  std::int64_t nanoseconds = 0;
};

template <class V>
decltype(auto) visit_fields(ClockReading& m, V&& v) {
  return v(m.domain, m.nanoseconds);
}

[[nodiscard]] ClockReading read_clock();

/// The middle of a stretch of time.
[[nodiscard]] std::int64_t halfway(std::int64_t begin, std::int64_t end);

/// What to add to times of their clock to have them in ours: 0 in one domain. Else `theirs`, read
/// halfway through answering, is taken for the middle between `asked` and `answered`, both ours;
/// it is wrong by at most half the time that question and answer were on their way.
[[nodiscard]] std::int64_t clock_offset(const ClockReading& theirs,
                                        const ClockReading& asked,
                                        std::int64_t answered);

}  // namespace stagecraft
