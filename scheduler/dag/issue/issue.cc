#include "stagecraft/scheduler/dag/issue/issue.h"

#include <utility>

#include "stagecraft/scheduler/dag/issue/communication_order.h"
#include "stagecraft/scheduler/dag/issue/dispatch.h"

namespace stagecraft {

IssuedDag issue(TrainingDag dag) {
  IssuedDag issued{.dag = std::move(dag), .streams = {}, .lists = {}};
  issued.streams = order_streams(issued.dag);
  delay_receives(issued.dag, issued.streams);
  order_communication(issued.dag);
  issued.lists = dispatch_order(issued.dag);
  return issued;
}

}  // namespace stagecraft
