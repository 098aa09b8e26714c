/// DagTimeline tells when each node of an issued DAG runs, and how much of the communication runs
/// under tasks.
///
/// A node starts when all nodes that it waits for have ended; those before it on its stream are
/// among them. The nodes of one collective start together. Nothing else delays a node: ranks have a
/// processor each, and transfers a network of their own for each stream. Updates and votes take no
/// time. simulate() knows no chunks and no collectives, but devices that differ, processors that
/// are shared, and times of overlap groups. Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/dag/issue/issue.h"

namespace stagecraft {

/// DagCosts says how long nodes take. A task takes the time of its stage, divided among its chunks
/// (chunk_shares.h); a transfer that of its link. A sum, gather or scatter among n ranks moves
/// (n-1)/n of its bytes over the links of sums, a whole sum twice as much; ties move no bytes.
struct DagCosts {
  Costs costs;
  double exchange = 0;  ///< an all_to_all
};

struct DagTimeline {
  struct Span {
    double start = 0;
    double end = 0;
  };
  struct List {
    double computing = 0;
    double communicating = 0;  ///< sends and collectives of all streams, added up
    double hidden = 0;         ///< the part of it under tasks
  };
  std::vector<Span> nodes;
  std::vector<List> lists;  ///< by rank list
  double makespan = 0;
};

/// Returns the timeline.
[[nodiscard]] DagTimeline timeline_of(const IssuedDag& issued, const DagCosts& costs);

}  // namespace stagecraft
