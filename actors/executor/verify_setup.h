/// verify: whether what a rank was told can be bound and run, whoever made it.
///
/// Asked when a setup was decoded; those cut out of a Job keep all of it.
/// VS-1: together with BP-1, which judges the list, a sound setup makes no executor read a
///       list outside of its bounds. It may still fail, with an Error, in a step.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/executor/rank_setup.h"

namespace stagecraft {

/// What is wrong, one sentence each; empty for a sound setup. Leaves to BP-1 what one list shows.
[[nodiscard]] std::vector<std::string> verify(const RankSetup& setup);
/// Likewise of a list that the rank is told of later.
[[nodiscard]] std::vector<std::string> verify(const RankPlan& evaluation, const RankSetup& setup);

}  // namespace stagecraft
