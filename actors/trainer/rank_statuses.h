/// From what the agents of a trainer's ranks say about them to what its user reads.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/crew/known_programs.h"
#include "stagecraft/actors/trainer/trainer.h"

namespace stagecraft {

/// Asks the agents what their ranks do. Waits up to 30 s for one that is silent.
[[nodiscard]] std::vector<RankStatus> rank_statuses(Crew& crew, const KnownPrograms& programs);

/// Asks the agents, and returns who waits for whom, as wait_sentence has it; empty if no rank is in
/// an instruction and none is silent. Waits up to kAskLimit. `in_order`: as WaitGraph's.
[[nodiscard]] std::string waits_in_words(Crew& crew, const KnownPrograms& programs, bool in_order);

}  // namespace stagecraft
