/// run_cluster makes the cluster of a run: its ranks as threads, processes, or workers that join.
#pragma once

#include <optional>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Returns how the workers start, by the options and the environment.
/// Errors: those of spawn_options_of_environment; UsageArgument for joining workers that no
///         credentials let in.
[[nodiscard]] SpawnOptions spawn_options(const TrainOptions& options);

/// Checks --spares against the list of hosts, before anything is compiled. Errors: those of
/// check_spares, and of spawn_options_of_environment.
void check_hosts(const TrainOptions& options);

/// Starts workers before anything computes, with --processor common: the number that follows from
/// the options alone. Returns none otherwise. Errors: those of Cluster::spawn.
[[nodiscard]] std::optional<Cluster> make_held_cluster(const TrainOptions& options,
                                                       Console& console);

/// Returns the ranks that the options request: those of `held`, if given.
/// Errors: those of Cluster::spawn; UsageArgument if `held` has too few, or if more workers come
///         than the schedule has ranks.
[[nodiscard]] Cluster make_cluster(const TrainJob& job, const std::optional<Cluster>& held);

}  // namespace stagecraft::tools
