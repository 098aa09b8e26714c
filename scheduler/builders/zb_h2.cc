#include "stagecraft/scheduler/builders/zb_h2.h"

#include <algorithm>

#include "stagecraft/scheduler/builders/row_list.h"

namespace stagecraft {

Schedule zb_h2(int ranks, int microbatches) {
  require_positive("zb-h2", "devices", ranks);
  require_positive("zb-h2", "microbatches", microbatches);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    RowList list;
    int forwards = 0;
    int weights = 0;
    while (forwards < std::min(microbatches, 2 * (ranks - r) - 1)) {
      list.forward(r, forwards++);
    }
    for (int i = 0; i < microbatches; ++i) {
      list.backward_input(r, i);
      if (i >= 2 * r) {
        list.backward_weight(r, weights++);
      }
      if (forwards < microbatches) {
        list.forward(r, forwards++);
      }
    }
    while (weights < microbatches) {
      list.backward_weight(r, weights++);
    }
    rows.push_back(list.take());
  }
  return finish(std::move(rows), StageGraph::chain(ranks), microbatches);
}

}  // namespace stagecraft
