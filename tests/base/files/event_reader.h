/// Reads the files that TensorBoard reads, written from the description of the format alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

struct ReadEvent {
  double wall_time = 0.0;
  std::int64_t step = 0;
  std::string version;
  std::optional<std::uint64_t> session_status;
  std::map<std::string, float> scalars;
};

/// Returns the events in the bytes of a file; fails the test if a record is damaged.
[[nodiscard]] std::vector<ReadEvent> events_in(std::string_view bytes);

}  // namespace stagecraft
