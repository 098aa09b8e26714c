/// lost_worker: says what became of a rank whose worker has ended: why, the last task that it is
/// known to have begun, and who waits for it.
///
///   rank 1 is lost: process 4711 was killed by signal 9 (Killed); the last task that it is known
///   to have begun is 1B3; rank 2 waits for 0B3 from rank 0, which waits for 1B3 from rank 1
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/wait_graph.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

struct LostRank {
  Rank rank;
  std::string cause;  ///< a clause; empty where nobody knows
};

/// Returns a WorkerLost about a rank that was lost between two steps, or of which nothing else is
/// known.
[[nodiscard]] Error lost_worker(const LostRank& lost);

/// Returns a WorkerLost about the first of `lost`, with its rank and the place of its last task.
/// `unfinished` are all that have not answered their order; what is said there of a lost rank is
/// what its agent said last. Requires: `lost` is not empty.
[[nodiscard]] Error lost_worker(const std::vector<LostRank>& lost,
                                std::vector<UnfinishedRank> unfinished,
                                const Plan& plan);

/// "cluster.replace(Rank(1)), then trainer.load(file)": what makes lost ranks good.
[[nodiscard]] std::string way_back(const std::vector<Rank>& lost);

}  // namespace stagecraft
