#include "stagecraft/scheduler/builders/zero_bubble/zb_h2.h"

#include "stagecraft/scheduler/builders/parts/alternating_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule zb_h2(int ranks, int microbatches) {
  require_positive("zb-h2", "devices", ranks);
  require_positive("zb-h2", "microbatches", microbatches);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(alternating_row({.total = microbatches,
                                    .warm_up = 2 * (ranks - 1 - r),
                                    .weight_lag = 2 * r,
                                    .forward = turns_of(r),
                                    .backward = turns_of(r)}));
  }
  return finish(std::move(rows), StageGraph::chain(ranks), microbatches);
}

}  // namespace stagecraft
