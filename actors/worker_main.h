/// A program that is its own worker: needed where stages are code of the program's own, and
/// possible for every other.
///
///   int main(int argc, char** argv) {
///     if (sc::is_worker(argc, argv)) return sc::worker_main(argc, argv);
///     auto cluster = sc::Cluster::spawn(4, {.program = "/proc/self/exe"});
///
/// First thing in main(), before anything is printed, opened or computed.
#pragma once

namespace stagecraft {

/// Whether this program was started as a worker by a cluster.
[[nodiscard]] bool is_worker(int argc, const char* const* argv);

/// Joins the cluster that started it and works for it until its driver has gone. Returns the exit
/// status: 0, or 1 when it could not join, which it says on standard error.
/// Requires: is_worker().
[[nodiscard]] int worker_main(int argc, const char* const* argv);

}  // namespace stagecraft
