/// run_watch makes what --serve shows of a training run, and lets its reports be seen there.
///
/// The run makes both before its first step and uses them on its thread.
#pragma once

#include <memory>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/actors/watch/watch.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

/// Returns the watch of --serve, null without it. Errors: those of Watch.
[[nodiscard]] std::unique_ptr<Watch> make_run_watch(const TrainJob& job);

/// Returns a progress that reports to `form` and to `watch`, which outlives it: files that were
/// saved, evaluations, signals and notes.
[[nodiscard]] std::unique_ptr<Progress> make_watched_progress(std::unique_ptr<Progress> form,
                                                              Watch& watch);

/// Returns where each rank runs, in words. Call it after a step: before, processes may be unknown.
[[nodiscard]] std::vector<std::string> places_of(const TrainJob& job, const Cluster& cluster);

/// Returns how tensors get from rank to rank, as Watch::set_routes takes it.
[[nodiscard]] std::vector<std::vector<Route>> routes_of(const std::vector<RankStatus>& ranks);

}  // namespace stagecraft::tools
