#include "stagecraft/bench/plans/sent_bytes.h"

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft::bench {
namespace {

/// Returns the bytes of a bucket's weights.
double bytes_of_bucket(const Execution& execution, const PlanBucket& bucket) {
  const PlanTables& tables = execution.plan->tables;
  const StageProgram& stage =
      execution.sized.compiled()
          .partition.stages[tables.stages[bucket.stages.front().index()].program.index()];
  const std::vector<int> completing = completing_chunks(stage);
  double bytes = 0;
  std::size_t trained = 0;
  for (const StageParameter& parameter : stage.parameters) {
    if (parameter.trained && bucket.chunks.has(completing[trained++])) {
      bytes += static_cast<double>(bytes_of(stage.at(parameter.value)));
    }
  }
  return bytes;
}

/// Returns the bytes of the samples that an exchange moves.
double bytes_of_samples(const Execution& execution, const Instruction& exchange) {
  const PlanTables& tables = execution.plan->tables;
  const StageProgram& stage =
      execution.sized.compiled()
          .partition.stages[tables.stages[exchange.task.stage.index()].program.index()];
  const Chunk& chunk = stage.chunks[static_cast<std::size_t>(exchange.chunks.first)];
  const bool inputs = (exchange.task.kind == CellKind::Forward) != exchange.returns;
  double bytes = 0;
  for (const ValueId value : inputs ? chunk.inputs : chunk.outputs) {
    bytes += static_cast<double>(bytes_of(stage.at(value)));
  }
  return bytes;
}

}  // namespace

SentBytes bytes_sent(const Execution& execution, Rank rank) {
  const Plan& plan = *execution.plan;
  SentBytes bytes;
  for (const Instruction& i : plan.list_of(rank).instructions) {
    if (i.op != Op::Start) {
      continue;
    }
    const PlanGroup& group = plan.tables.groups[static_cast<std::size_t>(i.group)];
    const auto n = static_cast<double>(group.members(rank).size());
    if (group.kind == PlanGroup::Kind::Copies) {
      const double times = i.collective == CollectiveKind::AllReduce ? 2 : 1;
      bytes.copies +=
          times * (n - 1) / n *
          bytes_of_bucket(execution, plan.tables.buckets[static_cast<std::size_t>(group.bucket)]);
    } else if (is_exchange(i)) {
      bytes.exchanges += (n - 1) / n * bytes_of_samples(execution, i);
    }
  }
  return bytes;
}

}  // namespace stagecraft::bench
