/// SumRoute says with which members of a group a rank exchanges parts in an all_reduce.
///
/// In a group of one host each member owns a part of the sum and exchanges parts with all others.
/// If each host has the same number of consecutive members, and there are no more hosts than
/// members per host, the members of each host own parts in the same way, and the sum of a part goes
/// from host to host:
///
///     host A: 0 + 1      -- partial sum -->  host B: + 2 + 3
///     the sum for 0, 1   <-- sum ----------  the sum for 2, 3
///
/// The order of addition is the same, that of ranks (CL-1), so bits do not depend on hosts. Between
/// two neighboring hosts a buffer goes once in each direction, instead of once for each member. All
/// other groups are treated as a group of one host. The limit on hosts is there because a sum
/// visits them one after the other.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft::collective {

struct SumRoute {
  std::vector<Rank> here;  ///< the members that own parts together, ascending; including this rank
  // The owners of the same part on the neighboring hosts:
  std::optional<Rank> before;
  std::optional<Rank> after;

  friend bool operator==(const SumRoute&, const SumRoute&) = default;
};

/// Returns the route of the transport's rank. Requires: it is a member.
[[nodiscard]] SumRoute sum_route(const Group& group, const Transport& transport);

}  // namespace stagecraft::collective
