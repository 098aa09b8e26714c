#include "stagecraft/actors/trainer/steps/step_entry.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/stage/unlike_regions.h"

namespace stagecraft {
namespace {

using StagesOfShape = std::vector<StageProgram>;

/// Refuses microbatches of different shapes whose samples an expert cannot compute at once.
/// Errors: UsageArgument.
void check_exchanged(const CompiledProgram& program, const Parts& parts) {
  const StagesOfShape* before = nullptr;
  for (const std::shared_ptr<const OtherShape>& shape : parts.shapes) {
    const StagesOfShape& stages = shape == nullptr ? program.partition.stages : shape->stages;
    for (std::size_t s = 0; before != nullptr && before != &stages && s < stages.size(); ++s) {
      if (const std::string why = unlike_regions((*before)[s], stages[s]); !why.empty()) {
        throw Error(
            Errc::UsageArgument,
            fmt::format("microbatches of this batch have different sizes, and a region of stage "
                        "\"{}\", whose experts ranks divide (shard), {}: make it independent of "
                        "the number of samples, or give batches that the {} microbatches divide",
                        stages[s].name,
                        why,
                        program.microbatches));
      }
    }
    before = &stages;
  }
}

}  // namespace

StepInput StepEntry::input(const KnownPrograms::Sent& sent, Parts& split, double scale) const {
  if (divides_weights(sent.plan->tables)) {
    check_exchanged(sent.program.compiled(), split);
  }
  PartRuns runs = runs_of(split, scale);  // first: it counts the tensors
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
