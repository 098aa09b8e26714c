#include "stagecraft/scheduler/builders/bidirectional/chimera.h"

#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"
#include "stagecraft/scheduler/builders/parts/time_slots.h"

namespace stagecraft {

Schedule chimera(int ranks, int microbatches) {
  require_positive("chimera", "devices", ranks);
  require_positive("chimera", "microbatches", microbatches);
  require_legal(
      "chimera", "an even number of devices", "devices", ranks, [](int d) { return d % 2 == 0; });
  require_legal("chimera",
                "microbatches divisible by the number of devices",
                "microbatches",
                microbatches,
                [&](int n) { return n % ranks == 0; });
  const int units = microbatches / ranks;
  TimeSlots slots(ranks, 2 * microbatches + 2 * ranks);
  for (int u = 0; u < units; ++u) {
    for (int i = 0; i < ranks / 2; ++i) {
      const int begin = 2 * ranks * u + 2 * i;
      const Microbatch m(u * ranks / 2 + i);
      for (int d = 0; d < ranks; ++d) {
        const StageId down(d);
        const StageId up(ranks + ranks - 1 - d);
        slots.put(d, begin + d, {CellKind::Forward, down, m});
        slots.put(d, begin + 2 * ranks - 1 - d, {CellKind::Backward, down, m});
        slots.put(d, begin + ranks - 1 - d, {CellKind::Forward, up, m});
        slots.put(d, begin + ranks + d, {CellKind::Backward, up, m});
      }
    }
  }
  return finish(slots.rows(), two_replicas(ranks), microbatches);
}

}  // namespace stagecraft
