/// What every rank decides alike after the vote: whether the step counts, and how far gradients are
/// scaled down.
#pragma once

#include <optional>

#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/futures/collective/vote.h"

namespace stagecraft {

/// Errors: NonFinite, naming parameter, stage and step, when the vote found a gradient that is not
/// finite.
void refuse_non_finite(const CompiledProgram& program, const VoteResult& verdict, Step step);

/// The factor that brings a gradient of norm `norm` down to `clip`; 1 where there is nothing to
/// clip.
[[nodiscard]] double clip_scale(const std::optional<double>& clip, double norm);

}  // namespace stagecraft
