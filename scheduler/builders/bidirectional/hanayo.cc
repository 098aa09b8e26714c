#include "stagecraft/scheduler/builders/bidirectional/hanayo.h"

#include "stagecraft/scheduler/builders/parts/row_list.h"
#include "stagecraft/scheduler/builders/parts/time_slots.h"

namespace stagecraft {

Schedule hanayo(int ranks, int microbatches, int waves) {
  require_positive("hanayo", "devices", ranks);
  require_positive("hanayo", "microbatches", microbatches);
  require_positive("hanayo", "waves", waves);
  require_legal("hanayo",
                "microbatches divisible by the number of devices",
                "microbatches",
                microbatches,
                [&](int n) { return n % ranks == 0; });
  const int stages = 2 * ranks * waves;
  const int unit = 2 * stages;  // slots from one unit of microbatches to the next
  TimeSlots slots(ranks, unit * (microbatches / ranks) + 2 * ranks);
  for (int m = 0; m < microbatches; ++m) {
    const int begin = unit * (m / ranks) + 2 * (m % ranks);
    for (int s = 0; s < stages; ++s) {
      const bool down = s / ranks % 2 == 0;
      const int row = down ? s % ranks : ranks - 1 - s % ranks;
      slots.put(row, begin + s, {CellKind::Forward, StageId(s), Microbatch(m)});
      slots.put(row, begin + 2 * stages - 1 - s, {CellKind::Backward, StageId(s), Microbatch(m)});
    }
  }
  return finish(slots.rows(), StageGraph::chain(stages), microbatches);
}

}  // namespace stagecraft
