#include "stagecraft/tools/train/rank_table.h"

#include <array>

#include <fmt/format.h>

namespace stagecraft::tools {

std::string rank_table(const std::vector<RankTotals>& ranks) {
  std::string table = fmt::format("{:>4}  {:>6}  {:>10}  {:>10}  {:>10}  {:>10}  {:>16}\n",
                                  "rank",
                                  "stages",
                                  "forward",
                                  "backward",
                                  "update",
                                  "waiting",
                                  "peak activations");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankTotals& r = ranks[rank];
    table += fmt::format("{:>4}  {:>6}  {:>8.2f} s  {:>8.2f} s  {:>8.2f} s  {:>8.2f} s  {:>16}\n",
                         rank,
                         r.stages,
                         r.forward,
                         r.backward,
                         r.update,
                         r.waiting,
                         bytes_text(r.peak_bytes));
  }
  return table;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace stagecraft::tools
