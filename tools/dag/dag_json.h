/// dag_json prints a DAG for programs:
///
///     {"stagecraft": "dag show", "version": 1, "microbatches": 2,
///      "nodes": [{"id": 0, "kind": "forward", "name": "0F0", "stage": 0, "microbatch": 0,
///                 "chunk": 0, "ranks": [0], "stream": "compute"}, ...],
///      "edges": [{"from": 0, "to": 4, "data": true}, ...],
///      "lists": [{"ranks": [0], "nodes": [0, 8, ...]}, ...]}
///
/// With a model, a computing node also has the "operators" of its chunk's forward, in their order.
/// A send and its receive have no edge; each has the other as "peer". Fields that a node does not
/// have are left out. With `times` the object has the "makespan", a node "start" and "end", and a
/// list its times "computing", "communicating" and "hidden" of that.
#pragma once

#include <string>

#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/dag/timeline/dag_timeline.h"

namespace stagecraft::tools {

[[nodiscard]] std::string dag_json(const IssuedDag& issued, const DagTimeline* times = nullptr);

}  // namespace stagecraft::tools
