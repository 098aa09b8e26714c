/// place_program: the program that starts for a place of a fleet: its arguments, on this host or by
/// ssh on another, and the destination of its output.
#pragma once

#include <functional>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/actors/launch/worker/worker_program.h"

namespace stagecraft {

/// `usual`: the worker program for a host that names none. `join`: the driver that the worker joins
/// (host, port), its place and incarnation, and `credentials`, a folder on this host; `options`
/// gives the rest. `on_let_in`: called when ssh has connected, on a thread of its own; never
/// without ssh. Errors: those of text_of_member and of WorkerOutput.
[[nodiscard]] ChildProgram place_program(const SpawnOptions& options,
                                         const WorkerProgram& usual,
                                         WorkerProcessOptions join,
                                         std::function<void()> on_let_in);

}  // namespace stagecraft
