/// spawn_options_of_environment reads the options of worker processes from the environment.
#pragma once

#include "stagecraft/actors/launch/ways/spawn_options.h"

namespace stagecraft {

/// Returns the options that these variables of the environment set. Each is optional:
///   STAGECRAFT_WORKERS        "joining": workers_come
///   STAGECRAFT_WORKERS_COMING how many
///   STAGECRAFT_CREDENTIALS    a folder
///   STAGECRAFT_HOSTS          a file of hosts, each with STAGECRAFT_PER_HOST slots if that is set
///   STAGECRAFT_SSH            the program that reaches them, and its options
///   STAGECRAFT_INTERFACE, STAGECRAFT_PORT, STAGECRAFT_MEETING_PLACE, STAGECRAFT_LOG_DIR
///   STAGECRAFT_LOCAL_RANKS, STAGECRAFT_JOIN_SECONDS, STAGECRAFT_SILENCE_SECONDS
///   STAGECRAFT_PROCESSOR      "own" or "common"
/// `tell` writes to standard error.
/// Errors: UsageArgument for a value that makes no sense; those of read_hosts.
[[nodiscard]] SpawnOptions spawn_options_of_environment();

}  // namespace stagecraft
