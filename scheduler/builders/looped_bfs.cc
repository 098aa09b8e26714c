#include "stagecraft/scheduler/builders/looped_bfs.h"

#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule looped_bfs(int ranks, int microbatches, int chunks, const LoopedBfsOptions& options) {
  require_positive("looped-bfs", "devices", ranks);
  require_positive("looped-bfs", "microbatches", microbatches);
  require_positive("looped-bfs", "chunks", chunks);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    RowList list;
    for (int c = 0; c < chunks; ++c) {
      for (int m = 0; m < microbatches; ++m) {
        list.forward(c * ranks + r, m);
      }
    }
    for (int c = chunks - 1; c >= 0; --c) {
      for (int k = 0; k < microbatches; ++k) {
        list.backward(c * ranks + r, options.reverse_backward ? microbatches - 1 - k : k);
      }
    }
    rows.push_back(list.take());
  }
  return finish(std::move(rows), StageGraph::chain(ranks * chunks), microbatches);
}

}  // namespace stagecraft
