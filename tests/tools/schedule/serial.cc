#include "stagecraft/tests/tools/schedule/serial.h"

#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule serial(int ranks, int microbatches) {
  require_positive("serial", "devices", ranks);
  require_positive("serial", "microbatches", microbatches);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    RowList list;
    for (int m = 0; m < microbatches; ++m) {
      list.forward(r, m);
      list.backward(r, m);
    }
    rows.push_back(list.take());
  }
  return finish(std::move(rows), StageGraph::chain(ranks), microbatches);
}

}  // namespace stagecraft
