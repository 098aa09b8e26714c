#include "stagecraft/tools/train/job/verify_order.h"

#include <cstddef>
#include <utility>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/notes/accumulation.h"

namespace stagecraft::tools {
namespace {

double gradient_bytes(const StageProgram& stage) {
  double bytes = 0.0;
  for (const StageParameter& parameter : stage.parameters) {
    bytes += parameter.trained ? static_cast<double>(bytes_of(stage.at(parameter.value))) : 0.0;
  }
  return bytes;
}

/// Returns how many partial sums of a stage's gradients a reference keeps: one for each copy and
/// round.
double partial_sums(const SumOrder& sums, StageId stage) {
  std::size_t count = 0;
  if (!sums.is_plain() && stage.index() < sums.stages.size()) {
    for (const SumOrder::Round& round : sums.stages[stage.index()]) {
      for (const SumOrder::RankSum& rank : round) {
        count += rank.size();
      }
    }
  }
  return static_cast<double>(count);
}

}  // namespace

VerifyOrder verify_order(const Execution& execution, const Choice& choice) {
  if (divides_weights(execution.plan->tables)) {
    return {.reordered =
                "ranks divide the experts, and an expert computes the samples of all ranks at once",
            .as_ranks = nullptr};
  }
  VerifyOrder order{.reordered = reordered_accumulation(
                        choice.schedule, choice.layout.expand(execution.program.stage_graph())),
                    .as_ranks = nullptr};
  if (order.reordered) {
    auto sums = std::make_shared<const SumOrder>(sum_order_of(*execution.plan));
    if (sums->common_order(execution.program.microbatches())) {
      order.as_ranks = std::move(sums);
    }
  }
  return order;
}

OneProcessBytes one_process_bytes(const VerifyOrder& order, const Program& program) {
  OneProcessBytes bytes{.trainings = order.as_ranks ? 2 : 1};
  for (const StageProgram& stage : program.compiled().partition.stages) {
    const double gradients = gradient_bytes(stage);
    bytes.sums += order.as_ranks ? partial_sums(*order.as_ranks, stage.id) * gradients : 0.0;
    // It recomputes nothing.
    bytes.microbatch += gradients + static_cast<double>(stage.saved_bytes + stage.replayed_bytes());
  }
  return bytes;
}

}  // namespace stagecraft::tools
