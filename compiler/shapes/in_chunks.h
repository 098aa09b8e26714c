/// in_chunks makes the program for a strategy with sums in parts or divided regions: its stages in
/// chunks (chunk_borders.h), in every shape that occurs.
#pragma once

#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// Returns `program` itself if the strategy asks for no parts. `layout`: of the strategy's stages.
[[nodiscard]] Program in_chunks(const Program& program,
                                const Strategy& strategy,
                                const Layout& layout);

}  // namespace stagecraft
