#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"

#include "stagecraft/scheduler/builders/bidirectional/dual_pipe_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule dualpipev(int ranks, int microbatches) {
  require_positive("dualpipev", "devices", ranks);
  require_positive("dualpipev", "microbatches", microbatches);
  require_legal(
      "dualpipev", "at least 2 x devices microbatches", "microbatches", microbatches, [&](int m) {
        return m >= 2 * ranks;
      });
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(dual_pipe_row({.near_stage = r,
                                  .far_stage = 2 * ranks - 1 - r,
                                  .half = ranks,
                                  .depth = r,
                                  .microbatches = microbatches}));
  }
  return finish(std::move(rows), StageGraph::chain(2 * ranks), microbatches);
}

}  // namespace stagecraft
