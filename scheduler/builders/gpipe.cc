#include "stagecraft/scheduler/builders/gpipe.h"

#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {

Schedule gpipe(const StageGraph& stages, int microbatches, const GpipeOptions& options) {
  require_positive("gpipe", "stages", stages.size());
  require_positive("gpipe", "microbatches", microbatches);
  require_acyclic("dag-gpipe", stages);
  std::vector<Schedule::Row> rows;
  for (int s = 0; s < stages.size(); ++s) {
    RowList list;
    const int own = stages.microbatches_of(StageId(s), microbatches);
    for (int m = 0; m < own; ++m) {
      list.forward(s, m);
    }
    for (int k = 0; k < own && stages.has_backward(StageId(s)); ++k) {
      list.backward(s, options.reverse_backward ? own - 1 - k : k);
    }
    rows.push_back(list.take());
  }
  return finish(std::move(rows), stages, microbatches);
}

Schedule gpipe(int stages, int microbatches, const GpipeOptions& options) {
  require_positive("gpipe", "devices", stages);
  return gpipe(StageGraph::chain(stages), microbatches, options);
}

}  // namespace stagecraft
