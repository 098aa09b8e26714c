#include "stagecraft/tools/train/run/routes.h"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::tools {

std::string routes_text(const std::vector<RankStatus>& ranks) {
  constexpr std::size_t kMostPairs = 12;
  std::map<Route, std::vector<std::string>> pairs;
  for (const RankStatus& from : ranks) {
    for (std::size_t to = 0; to < from.routes.size(); ++to) {
      if (Rank(to) != from.rank && from.routes[to] != Route::Unused) {
        pairs[from.routes[to]].push_back(fmt::format("{} to {}", from.rank.value, to));
      }
    }
  }
  std::string text;
  for (auto& [route, all] : pairs) {
    const std::size_t left = all.size() > kMostPairs ? all.size() - kMostPairs : 0;
    all.resize(all.size() - left);
    text += fmt::format("tensors by {}: rank {}{}\n",
                        to_string(route),
                        fmt::join(all, ", "),
                        left > 0 ? fmt::format(" and {} more pairs", left) : "");
  }
  return text;
}

}  // namespace stagecraft::tools
