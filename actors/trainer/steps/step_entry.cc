#include "stagecraft/actors/trainer/steps/step_entry.h"

#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/memory_order.h"

namespace stagecraft {

StepInput StepEntry::input(const KnownPrograms::Sent& sent, Parts& split, double scale) const {
  PartRuns runs = runs_of(split, scale);  // first: it counts the tensors
  if (!may_run(sent.plan->tables, runs)) {
    throw Error(
        Errc::UsageArgument,
        "microbatches of one batch have different sizes or weights, and ranks that divide experts "
        "(shard) exchange the samples of as many microbatches: give batches that the number "
        "of microbatches divides, and no loss_weight");
  }
  for (std::vector<std::vector<at::Tensor>>* side : {&split.inputs, &split.labels}) {
    for (std::vector<at::Tensor>& part : *side) {
      for (at::Tensor& tensor : part) {
        tensor = to_memory_order(tensor, memory_order_of(tensor));
      }
    }
  }
  return {.program = sent.number,
          .plan = sent.plan,
          .seed = seed_,
          .inputs = std::move(split.inputs),
          .labels = std::move(split.labels),
          .parts = std::move(runs)};
}

StepFuture StepEntry::enter(StepInput input) {
  const bool trains = input.program == kTraining;
  EnteredStep entered = ledger_.enter(std::move(input), outstanding_);
  auto kept = trains ? keeper_.expect(entered) : nullptr;
  crew_.submit(entered.submission);
  return StepFuture(std::move(entered.result), std::move(kept));
}

}  // namespace stagecraft
