/// WatchedState is what a watched run shows: its facts, its curves, its last step, and what went on
/// beside the steps.
///
/// WatchBoard keeps one; the server makes JSON (state_json.h) and metrics (metrics_text.h) of
/// copies. A value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/step/rank_times.h"
#include "stagecraft/actors/watch/watch_curve.h"
#include "stagecraft/futures/transport/route.h"
#include "stagecraft/scheduler/measured/measured_step.h"

namespace stagecraft {

struct WatchedRank {
  std::string stages;             ///< those that it runs, "0" or "0,3"
  std::string place;              ///< its host and process, in words; empty if unknown
  std::int64_t billed_bytes = 0;  ///< what it may hold by the bill made before the run; 0: no bill
};

/// WatchedRun holds the facts of a run that do not change.
struct WatchedRun {
  std::string model;
  std::string schedule;
  std::int64_t steps = 0;           ///< at which it ends; 0 if nobody knows
  std::string counted = "samples";  ///< what a step counts: samples or tokens
  std::vector<WatchedRank> ranks;
  std::vector<std::vector<int>> ranks_of_rows = {};  ///< of the schedule; empty: no timelines come
  bool takes_checkpoints = false;                    ///< a checkpoint can be requested
};

enum class WatchPhase : std::uint8_t { Running, Paused, Ended };

/// WatchedStep is the last step.
struct WatchedStep {
  std::int64_t step = 0;  ///< updates made with it
  double loss = 0.0;
  double seconds = 0.0;
  double per_second = 0.0;
  double bubble = 0.0;  ///< as StepResult has it
  double learning_rate = 0.0;
  double gradient_norm = 0.0;
  std::vector<RankTimes> ranks;
  std::shared_ptr<const MeasuredStep> timeline;  ///< null if it was not recorded
};

struct WatchEvent {
  std::int64_t step = 0;  ///< updates made before it
  std::string text;
};

/// RouteBytes counts the bytes of activations and gradients between rows, by how they went.
struct RouteBytes {
  Route route = Route::Unused;
  std::int64_t bytes = 0;
};

/// WatchedHealing counts what the losses of workers have cost the run (`train --restarts`).
struct WatchedHealing {
  std::int64_t restarts = 0;        ///< failures that were healed
  std::int64_t repeated_steps = 0;  ///< steps that were made again
  double seconds = 0.0;             ///< from failures until the run could go on
};

struct WatchedState {
  WatchedRun run;
  WatchPhase phase = WatchPhase::Running;
  std::string end;                ///< how the run ended; empty before
  WatchedStep last;               ///< before the first one, the number of updates alone
  bool has_step = false;          ///< whether `last` was made
  std::int64_t counted = 0;       ///< samples or tokens since the run was begun or continued
  double running_seconds = 0.0;   ///< of the step in progress; 0 between steps
  std::string waits;              ///< who waits for whom, while a step is late
  std::vector<RouteBytes> bytes;  ///< of all steps so far
  std::vector<WatchPoint> curve;
  WatchedHealing healing;
  std::int64_t checkpoints_written = 0;
  std::vector<WatchEvent> checkpoints;  ///< their files, newest last; the newest kMostEvents
  std::vector<WatchEvent> messages;     ///< newest last
};

}  // namespace stagecraft
