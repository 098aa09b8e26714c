/// rank_table writes how each rank spent time and memory, at the end of a run: as a table, in one
/// line, and as the object for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace stagecraft::tools {

/// RankTotals holds sums over the steps of a run. Units: seconds, bytes.
struct RankTotals {
  std::string stages;  ///< the stages of the rank, "0" or "0,3"
  double forward = 0.0;
  double backward = 0.0;
  double update = 0.0;
  double waiting = 0.0;
  std::int64_t peak_bytes = 0;  ///< the largest of any step: activations alive at once
  // The next figures are of the rank's pool: the largest of any step, and the values after the
  // last.
  std::int64_t memory_peak = 0;
  std::int64_t memory_live = 0;
  std::int64_t memory_cached = 0;
  std::int64_t memory_billed = 0;  ///< what the bill before the run said of memory_peak; 0: nothing
};

/// Returns the table, one line per rank, ending in a newline. It has bills if a rank has one.
[[nodiscard]] std::string rank_table(const std::vector<RankTotals>& ranks);
/// Returns the busiest rank and the most memory in one line, ending in a newline. Requires: a rank.
[[nodiscard]] std::string rank_line(const std::vector<RankTotals>& ranks);
/// Returns the same as one object, {"event": "ranks", "ranks": [...]}.
[[nodiscard]] nlohmann::ordered_json rank_json(const std::vector<RankTotals>& ranks);

}  // namespace stagecraft::tools
