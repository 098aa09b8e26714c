#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"

#include <algorithm>

#include "stagecraft/scheduler/builders/bidirectional/dual_pipe_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

StageGraph two_replicas(int ranks) {
  std::vector<StageGraph::Edge> edges;
  std::vector<StageGraph::Edge> pairs;
  for (int k = 0; k < ranks; ++k) {
    if (k + 1 < ranks) {
      edges.emplace_back(k, k + 1);
      edges.emplace_back(ranks + k, ranks + k + 1);
    }
    pairs.emplace_back(k, ranks + k);
  }
  StageGraph graph = StageGraph::from_edges(2 * ranks, edges);
  graph.set_replica_pairs(std::move(pairs));
  return graph;
}

Schedule dualpipe(int ranks, int microbatches) {
  require_positive("dualpipe", "devices", ranks);
  require_positive("dualpipe", "microbatches", microbatches);
  require_legal(
      "dualpipe", "an even number of devices", "devices", ranks, [](int p) { return p % 2 == 0; });
  require_legal("dualpipe",
                "an even number of microbatches, at least 2 x devices",
                "microbatches",
                microbatches,
                [&](int m) { return m % 2 == 0 && m >= 2 * ranks; });
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    const int down = r;
    const int up = ranks + ranks - 1 - r;
    const bool first_half = r < ranks / 2;
    rows.push_back(dual_pipe_row({.near_stage = first_half ? down : up,
                                  .far_stage = first_half ? up : down,
                                  .half = ranks / 2,
                                  .depth = std::min(r, ranks - 1 - r),
                                  .microbatches = microbatches / 2}));
  }
  return finish(std::move(rows), two_replicas(ranks), microbatches);
}

}  // namespace stagecraft
