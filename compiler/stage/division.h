/// misfit_of_division says why ranks cannot divide the weights of a chunk of a stage among them.
///
/// With n ranks, a rank has 1/n of each parameter of the chunk, in dimension 0. Samples, in
/// dimension 1, come from all ranks:
///
///     whole     in [E, C, d]        weights [E, d, f]      out [E, C, d]
///     divided   in [E/n, n*C, d]    weights [E/n, d, f]    out [E/n, n*C, d]
#pragma once

#include <cstdint>
#include <string>

#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Returns what the chunk does that cannot be divided, e.g. "draws random numbers (...)"; empty if
/// nothing shows. check_divided() (compiler/lower) runs it to find more. Requires: the stage has
/// the chunk.
[[nodiscard]] std::string misfit_of_division(const StageProgram& stage,
                                             std::int32_t chunk,
                                             std::int64_t ranks);

}  // namespace stagecraft
