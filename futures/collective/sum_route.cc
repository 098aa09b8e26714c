#include "stagecraft/futures/collective/sum_route.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace stagecraft::collective {
namespace {

/// Returns the number of consecutive members that each host has; that of all members if the group
/// is treated as one of a single host.
std::size_t members_a_host(const Group& group, const Transport& transport) {
  std::vector<std::string> hosts;  // of the members
  for (const Rank rank : group.ranks) {
    hosts.push_back(transport.host_of(rank));
  }
  const auto other = std::ranges::find_if(hosts, [&](const auto& h) { return h != hosts.front(); });
  const auto each = static_cast<std::size_t>(other - hosts.begin());
  bool alike = hosts.size() % each == 0 && hosts.size() / each <= each;
  for (std::size_t i = 1; alike && i < hosts.size(); ++i) {
    alike = (hosts[i] == hosts[i - 1]) == (i % each != 0);
  }
  return alike ? each : hosts.size();
}

}  // namespace

SumRoute sum_route(const Group& group, const Transport& transport) {
  const std::size_t each = members_a_host(group, transport);
  const auto self = static_cast<std::size_t>(
      std::ranges::lower_bound(group.ranks, transport.self()) - group.ranks.begin());
  const auto begin = group.ranks.begin() + static_cast<std::ptrdiff_t>(self / each * each);
  SumRoute route{.here = {begin, begin + static_cast<std::ptrdiff_t>(each)}};
  if (self >= each) {
    route.before = group.ranks[self - each];
  }
  if (self + each < group.ranks.size()) {
    route.after = group.ranks[self + each];
  }
  return route;
}

}  // namespace stagecraft::collective
