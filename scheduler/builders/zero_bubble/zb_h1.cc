#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"

#include "stagecraft/scheduler/builders/parts/alternating_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule zb_h1(int ranks, int microbatches) {
  require_positive("zb-h1", "devices", ranks);
  require_positive("zb-h1", "microbatches", microbatches);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(alternating_row({.total = microbatches,
                                    .warm_up = ranks - 1 - r,
                                    .weight_lag = r,
                                    .forward = turns_of(r),
                                    .backward = turns_of(r)}));
  }
  return finish(std::move(rows), StageGraph::chain(ranks), microbatches);
}

}  // namespace stagecraft
