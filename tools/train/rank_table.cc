#include "stagecraft/tools/train/rank_table.h"

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"

namespace stagecraft::tools {

std::string rank_table(const std::vector<RankTotals>& ranks) {
  std::string table =
      fmt::format("{:>4}  {:>6}  {:>10}  {:>10}  {:>10}  {:>10}  {:>16}  {:>11}  {:>10}  {:>10}\n",
                  "rank",
                  "stages",
                  "forward",
                  "backward",
                  "update",
                  "waiting",
                  "peak activations",
                  "peak memory",
                  "live",
                  "cached");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankTotals& r = ranks[rank];
    table += fmt::format(
        "{:>4}  {:>6}  {:>8.2f} s  {:>8.2f} s  {:>8.2f} s  {:>8.2f} s  {:>16}  {:>11}  {:>10}  "
        "{:>10}\n",
        rank,
        r.stages,
        r.forward,
        r.backward,
        r.update,
        r.waiting,
        bytes_text(static_cast<double>(r.peak_bytes)),
        bytes_text(static_cast<double>(r.memory_peak)),
        bytes_text(static_cast<double>(r.memory_live)),
        bytes_text(static_cast<double>(r.memory_cached)));
  }
  return table;
}

}  // namespace stagecraft::tools
