/// Candidate is a schedule that a command compares: a builder's, or a file. It has figures, or the
/// reason why it has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/simulate/schedule_figures.h"

namespace stagecraft::tools {

/// CommonJob is the job of all candidates.
struct CommonJob {
  int devices = 0;
  int microbatches = 0;
  std::optional<int> chunks;  ///< for builders that leave it open
  Costs costs;
};

struct Candidate {
  std::string name;
  std::optional<ScheduleFigures> figures;
  std::string reason;  ///< why there are none
};

/// Returns the builders of these names, "all" being every one, each once.
/// Errors: UsageArgument for an unknown name.
[[nodiscard]] std::vector<const BuilderInfo*> named_builders(const std::vector<std::string>& names);

/// Builds the schedule of the job; builders of stage graphs build it over the chain. If the builder
/// does not take the job, `reason` is its own.
/// Errors: those of figures_of (cost_options.h).
[[nodiscard]] Candidate built_candidate(const BuilderInfo& builder, const CommonJob& job);

}  // namespace stagecraft::tools
