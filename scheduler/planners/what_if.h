/// WhatIf: a request with something otherwise: a faster link, more memory, operators that take less
/// time. And the other way round: how much would have to be otherwise for another plan to win.
///
/// Whether it would is found by judging both plans again under the changed request, never by
/// reckoning. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft {

struct WhatIf {
  enum class Kind { Link, Memory, Operators };
  Kind kind = Kind::Link;
  int from = 0, to = 0;        ///< of a link, in both directions
  double factor = 1;           ///< a link: how many times as fast; operators: of their times
  double bytes = 0;            ///< memory of every device
  std::vector<int> operators;  ///< by place
  int stage = 0;               ///< of these operators, for people
};

/// Returns the request as it would be.
[[nodiscard]] PlanRequest with(PlanRequest request, const WhatIf& otherwise);

/// Returns the smallest change of each kind under which `other` fits and leads over `chosen`
/// (proposal.h): more memory where it lacks some, else links that are faster or slower, and one of
/// its stages that is faster. Fewer where no such change is enough: links up to 100 times, stages
/// down to a tenth.
[[nodiscard]] std::vector<WhatIf> what_it_takes(const PlanRequest& request,
                                                const PlanProposal& chosen,
                                                const PlanProposal& other);

/// In words: "operators of its stage 2 took 12 % less time".
[[nodiscard]] std::string to_string(const WhatIf& otherwise);

}  // namespace stagecraft
