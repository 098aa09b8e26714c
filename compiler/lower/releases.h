/// add_releases gives back the weights that groups gather for tasks (P-12), as soon as no task of
/// the round uses them any more.
///
/// A pass of lower(), before slots and waits.
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Adds the Release of each round that the list gathers.
void add_releases(RankList& list, const PlanTables& tables);

}  // namespace stagecraft
