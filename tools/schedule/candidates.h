/// The schedules that a command compares: builders by name, and files, each with why it has no
/// figures where it has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/registry.h"
#include "stagecraft/scheduler/schedule_figures.h"

namespace stagecraft::tools {

/// The job that all of them do.
struct CommonJob {
  int devices = 0;
  int microbatches = 0;
  std::optional<int> chunks;  ///< for the builders that leave it open
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

/// What the builder makes of the job; builders of stage graphs make it of the chain. The reason is
/// the builder's own where it does not take the job.
[[nodiscard]] Candidate built_candidate(const BuilderInfo& builder, const CommonJob& job);

}  // namespace stagecraft::tools
