/// place_program: the program that is started for a place of a fleet: which words it is given, on
/// this host or by ssh on another, and where what it writes goes.
#pragma once

#include <functional>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/launch/child_process.h"
#include "stagecraft/actors/launch/worker_program.h"

namespace stagecraft {

/// `usual`: the worker program where a host names none. `join`: whom the worker joins (host, port),
/// its place and incarnation, and `credentials`, a folder on this host; the rest follows from
/// `options`. `on_let_in`: told when ssh is through, on a thread of its own; never where there is
/// none. Errors: those of text_of_member and of WorkerOutput.
[[nodiscard]] ChildProgram place_program(const SpawnOptions& options,
                                         const WorkerProgram& usual,
                                         WorkerProcessOptions join,
                                         std::function<void()> on_let_in);

}  // namespace stagecraft
