#include "stagecraft/actors/trainer/steps/updates.h"

#include <fmt/format.h>

#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/actors/trainer/steps/callers_thread.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/shapes/parts.h"

namespace stagecraft {

StepFuture Updates::train_on(const Batch& inputs, const Batch& labels, bool updates) {
  const OnCallersThread scope;
  return enter(parts_of(program_, inputs, labels, entry_.memory()), {}, updates);
}

StepFuture Updates::train_on(const LocalBatch& batch, bool updates) {
  if (batch.source.empty() || batch.number < 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("a batch that ranks read needs the name of a source and a number from "
                            "0 on, found \"{}\" and {}",
                            batch.source,
                            batch.number));
  }
  if (loss_weight_) {
    throw Error(Errc::UsageArgument,
                "loss_weight reads the labels of each batch in this process, and ranks read the "
                "batches of a source by themselves: give the batch here, or leave loss_weight out");
  }
  return enter(parts_as_compiled(program_), batch, updates);
}

/// Returns the scale of the weights of a batch's parts, after it has set those of losses.
double Updates::weigh(Parts& parts) {
  if (!loss_weight_) {
    if (batches_ == 0) {
      first_samples_ = parts.first_samples;
    }
    return scale_of(parts, first_samples_);
  }
  std::vector<double> counts = loss_counts(loss_weight_, parts);
  if (batches_ == 0) {
    loss_unit_ = counts.front();
  }
  parts.weights = relative_weights(std::move(counts), loss_unit_);
  return 1.0;
}

/// Trains on the tensors of `parts`, or has the ranks read them from `local`.
StepFuture Updates::enter(Parts parts, const LocalBatch& local, bool updates) {
  const double scale = weigh(parts);
  const KnownPrograms::Sent& sent = entry_.sent(program_, parts);
  StepInput input = entry_.input(sent, parts, scale);
  input.local = local;
  input.learning_rate = rate_;
  input.clip = clip_;
  input.frozen = frozen_;
  input.rate_factor = rate_factor_;
  input.update = number_;
  input.batch = batches_;
  input.updates = updates;
  StepFuture result = entry_.enter(std::move(input));
  if (updates) {
    begin();
  } else {
    ++batches_;
  }
  return result;
}

void Updates::begin() {
  ++number_;
  batches_ = 0;
}

}  // namespace stagecraft
