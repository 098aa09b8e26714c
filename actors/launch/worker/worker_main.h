/// worker_main makes a program its own worker. A program whose stages contain its own code needs
/// this; every other program may do it.
///
///   int main(int argc, char** argv) {
///     if (sc::is_worker(argc, argv)) return sc::worker_main(argc, argv);
///     auto cluster = sc::Cluster::spawn(4, {.program = "/proc/self/exe"});
///
/// Call it first in main(), before the program prints, opens or computes anything.
#pragma once

#include <memory>

#include "stagecraft/actors/remote/host/actor_type.h"

namespace stagecraft {

/// Returns whether a cluster started this program as a worker.
[[nodiscard]] bool is_worker(int argc, const char* const* argv);

/// Joins the cluster that started it and works for it until its driver has gone. Returns the exit
/// status: that of run_worker_process, or 1 if it could not join, with a message on standard error.
/// `types`: the classes of which the driver may spawn actors here, types<Tokenizer, Judge>().
/// Requires: is_worker().
[[nodiscard]] int worker_main(
    int argc,
    const char* const* argv,
    std::shared_ptr<const ActorTypes> types = std::make_shared<ActorTypes>());

}  // namespace stagecraft
