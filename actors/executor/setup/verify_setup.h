/// verify checks whether a rank can bind and run a setup from any source.
///
/// It is called after a setup was decoded; a setup cut out of a Job fulfills all of it.
/// VS-1: together with BP-1, which judges the list, a sound setup makes no executor read a list
///       outside of its bounds. A step may still fail with an Error.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/executor/setup/rank_setup.h"

namespace stagecraft {

/// Returns the faults, one sentence each; empty for a sound setup. Leaves those of one list to
/// BP-1.
[[nodiscard]] std::vector<std::string> verify(const RankSetup& setup);
/// Judges likewise a list that the rank gets later.
[[nodiscard]] std::vector<std::string> verify(const PlanShare& evaluation, const RankSetup& setup);

}  // namespace stagecraft
