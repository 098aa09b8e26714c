/// PlannedModel: a model that can be cut anew, with a batch for it, and what the simulator says of
/// a cut that was made. For those who hold predictions against a run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft::bench {

struct PlannedModel {
  std::string name;
  /// Without a cut: by its own markers, which make `stages`.
  std::function<Program(const std::optional<Cut>& cut, int stages)> compile;
  Batch inputs, labels;
  int microbatches = 1;
};

/// A model of `stagecraft train`, on microbatches of `samples`; `sizes`: options of that command.
/// Errors: those of parse_train_options and open_work.
[[nodiscard]] PlannedModel train_model(const std::string& model,
                                       int microbatches,
                                       int samples,
                                       const std::vector<std::string>& sizes = {});

/// A Llama with a vocabulary of 8,192 words, most of whose work is its head.
[[nodiscard]] PlannedModel large_vocabulary(int microbatches, int samples);

/// The program as a proposal: its own cut, by this schedule.
/// Requires: the costs are of the same model, on microbatches of the program's.
/// Errors: those of Judge::propose.
[[nodiscard]] PlanProposal judged(const PlanRequest& request,
                                  const Program& program,
                                  const Schedule& schedule);

}  // namespace stagecraft::bench
