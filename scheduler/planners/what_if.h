/// WhatIf is a request with a change: a faster link, more memory, operators that take less time.
/// what_it_takes() answers the reverse question: which change makes another plan win.
///
/// Both plans are judged again under the changed request; nothing is extrapolated. Pure; any
/// thread.
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
  double factor = 1;           ///< a link: factor of its speed; operators: factor of their times
  double bytes = 0;            ///< memory of every device
  std::vector<int> operators;  ///< by place
  int stage = 0;               ///< of these operators, for people
};

/// Returns the changed request.
[[nodiscard]] PlanRequest with(PlanRequest request, const WhatIf& otherwise);

/// Returns the smallest change of each kind under which `other` fits and leads over `chosen`
/// (proposal.h): more memory if it lacks some; otherwise faster or slower links, and one faster
/// stage of `other`. Leaves out a kind if no such change is enough: links up to 100 times, stages
/// down to a tenth. Ends early, with the changes known by then, once request.goes_on says so.
[[nodiscard]] std::vector<WhatIf> what_it_takes(const PlanRequest& request,
                                                const PlanProposal& chosen,
                                                const PlanProposal& other);

/// Returns a phrase: "operators of its stage 2 took 12 % less time".
[[nodiscard]] std::string to_string(const WhatIf& otherwise);

}  // namespace stagecraft
