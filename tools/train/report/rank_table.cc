#include "stagecraft/tools/train/report/rank_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"

namespace stagecraft::tools {

std::string rank_table(const std::vector<RankTotals>& ranks) {
  const bool billed = std::ranges::any_of(ranks, &RankTotals::memory_billed);
  std::string table = fmt::format(
      "{:>4}  {:>6}  {:>10}  {:>10}  {:>10}  {:>10}  {:>16}  {:>11}  {}{:>10}  {:>10}\n",
      "rank",
      "stages",
      "forward",
      "backward",
      "update",
      "waiting",
      "peak activations",
      "peak memory",
      billed ? fmt::format("{:>11}  ", "bill") : "",
      "live",
      "cached");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankTotals& r = ranks[rank];
    table += fmt::format(
        "{:>4}  {:>6}  {:>8.2f} s  {:>8.2f} s  {:>8.2f} s  {:>8.2f} s  {:>16}  {:>11}  {}{:>10}  "
        "{:>10}\n",
        rank,
        r.stages,
        r.forward,
        r.backward,
        r.update,
        r.waiting,
        bytes_text(static_cast<double>(r.peak_bytes)),
        bytes_text(static_cast<double>(r.memory_peak)),
        billed ? fmt::format("{:>11}  ", bytes_text(static_cast<double>(r.memory_billed))) : "",
        bytes_text(static_cast<double>(r.memory_live)),
        bytes_text(static_cast<double>(r.memory_cached)));
  }
  return table;
}

std::string rank_line(const std::vector<RankTotals>& ranks) {
  const auto computing = [](const RankTotals& r) { return r.forward + r.backward + r.update; };
  const auto busiest = std::ranges::max_element(ranks, {}, computing);
  const auto fullest = std::ranges::max_element(ranks, {}, &RankTotals::memory_peak);
  return fmt::format("busiest: rank {}, {:.2f} s of computing; most memory: rank {}, {}\n",
                     busiest - ranks.begin(),
                     computing(*busiest),
                     fullest - ranks.begin(),
                     bytes_text(static_cast<double>(fullest->memory_peak)));
}

nlohmann::ordered_json rank_json(const std::vector<RankTotals>& ranks) {
  nlohmann::ordered_json object{{"event", "ranks"}, {"ranks", nlohmann::ordered_json::array()}};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankTotals& r = ranks[rank];
    object["ranks"].push_back({{"rank", rank},
                               {"stages", r.stages},
                               {"forward_seconds", r.forward},
                               {"backward_seconds", r.backward},
                               {"update_seconds", r.update},
                               {"waiting_seconds", r.waiting},
                               {"peak_activation_bytes", r.peak_bytes},
                               {"peak_bytes", r.memory_peak},
                               {"live_bytes", r.memory_live},
                               {"cached_bytes", r.memory_cached}});
    if (r.memory_billed != 0) {
      object["ranks"].back()["billed_peak_bytes"] = r.memory_billed;
    }
  }
  return object;
}

}  // namespace stagecraft::tools
