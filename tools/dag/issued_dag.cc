#include "stagecraft/tools/dag/issued_dag.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/dag/dispatch.h"

namespace stagecraft::tools {
namespace {

void refuse_cycle(const TrainingDag& dag) {
  std::vector<std::string> names;
  for (const int n : find_cycle(dag)) {
    names.push_back(to_string(dag, n));
  }
  if (!names.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("the ranks would wait for each other for ever: {} -> {}; some of them "
                            "are put in order by the strategy, and some by a rule that looks at "
                            "one rank alone: add an order for every rank",
                            fmt::join(names, " -> "),
                            names.front()));
  }
}

}  // namespace

IssuedDag issue(TrainingDag dag) {
  IssuedDag issued{.dag = std::move(dag), .streams = {}, .lists = {}};
  issued.streams = order_streams(issued.dag);
  refuse_cycle(issued.dag);
  delay_receives(issued.dag, issued.streams);
  issued.lists = dispatch_order(issued.dag);
  return issued;
}

}  // namespace stagecraft::tools
