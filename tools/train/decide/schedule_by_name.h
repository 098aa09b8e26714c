/// schedule_by_name makes the schedule of a run by a builder: from its name, ranks and stages, over
/// the graph of the model, or for costs.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/decide/step_size.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Returns the number of ranks that the options request of a builder, for each copy of the
/// pipeline. `stages`: of the cut or --stages. `graph`: of --graph.
/// Errors: UsageArgument for ranks that do not divide over the copies.
[[nodiscard]] int ranks_for(const BuilderInfo& builder,
                            const PipelineOptions& options,
                            const std::optional<std::int64_t>& stages,
                            const std::optional<StageGraph>& graph);

/// Makes the choice. Errors: UsageArgument for stages that the builder does not make; those of
/// build_schedule().
[[nodiscard]] Choice choose_by_name(const BuilderInfo& builder,
                                    const PipelineOptions& options,
                                    const StepSize& size,
                                    const std::optional<StageGraph>& graph);

/// Builds the schedule again for the graph of the program, if the builder takes one.
void build_over(const StageGraph& graph, const PipelineOptions& options, Choice& choice);

/// Builds the schedule again for these costs, if the builder takes them.
void build_for(const Costs& costs, const PipelineOptions& options, Choice& choice);

}  // namespace stagecraft::tools
