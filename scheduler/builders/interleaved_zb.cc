#include "stagecraft/scheduler/builders/interleaved_zb.h"

#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/parts/alternating_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule interleaved_zb(int ranks, int microbatches, int chunks) {
  const LoopOrder order("interleaved-zb", ranks, microbatches, chunks);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(alternating_row({.total = order.total(),
                                    .warm_up = (chunks - 1) * order.group() + ranks - 1 - r,
                                    .weight_lag = r,
                                    .forward = order.forwards(r),
                                    .backward = order.backwards(r)}));
  }
  return finish(std::move(rows), StageGraph::chain(ranks * chunks), microbatches);
}

}  // namespace stagecraft
