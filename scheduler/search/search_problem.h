/// SearchProblem holds the decisions of the search for the best schedule, as lanes of tasks.
///
/// A lane is the tasks of one kind of one stage. All microbatches are alike, so a lane takes them
/// in order: exchanging the names of two microbatches turns any schedule into one of this form, no
/// later and with no more in flight. So the progress of a lane is one number.
///
///     lane F0  0F0 0F1 0F2 ...      each task waits for the one before it in its lane and for the
///     lane F1  1F0 1F1 1F2 ...      task of its microbatch in the lanes that feed it
///
/// LQ-1: heads and tails hold in every schedule within the cap: no task starts before its head, and
///       its tail passes between its end and the end of the schedule.
/// make_search_problem() makes it, OrderSearch reads it. A value; any thread may read.
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/search/one_machine.h"

namespace stagecraft {

struct Lane {
  struct Feed {
    int lane = 0;
    Ticks transfer = 0;
  };

  CellKind kind = CellKind::Forward;
  int stage = 0;
  int device = 0;
  Ticks time = 0;           ///< of one task; at least 1
  std::vector<Feed> feeds;  ///< a task waits for the same microbatch of these lanes
  bool takes = false;       ///< adds one in flight at the start of a task
  bool releases = false;    ///< removes one at its end
  int released_by = -1;     ///< if it takes: the lane that releases what it took
  /// The next three fields are set if the lane takes memory (cap_rules.h). The lanes that a
  /// microbatch passes on this device are a path.
  int path_before = 0;             ///< lanes of its path that take before it, itself included
  std::vector<int> path_takes;     ///< lanes of its path that take
  std::vector<int> path_releases;  ///< lanes of its path that release
  bool feeds_nobody = false;       ///< only tasks of its own lane wait for it
};

struct SearchProblem {
  int devices = 0;
  int microbatches = 0;     ///< of each lane
  int cap = 0;              ///< most in flight on a device, in stages x microbatches
  double tick = 1;          ///< time units of one tick
  std::vector<Lane> lanes;  ///< each lane stands after those that feed it
  std::vector<std::vector<int>> of_device;  ///< lanes by device
  std::vector<std::vector<Ticks>> heads;    ///< by lane and microbatch
  std::vector<std::vector<Ticks>> tails;
  Ticks bound = 0;  ///< no schedule takes less
};

}  // namespace stagecraft
