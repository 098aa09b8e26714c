#include "stagecraft/tools/train/decide/schedule_by_name.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/schedule/input/named_schedule.h"

namespace stagecraft::tools {
namespace {

/// Limits to the largest int. Builders refuse what no machine can hold, so that stays too large.
int to_int(std::int64_t n) {
  return static_cast<int>(std::min<std::int64_t>(n, std::numeric_limits<int>::max()));
}

void replace_schedule(const Schedule& schedule, const PipelineOptions& options, Choice& choice) {
  choice.schedule = in_copies(schedule, to_int(options.copies()));
  choice.layout = Layout::of(choice.schedule);
}

/// Returns the ranks of each copy of the pipeline. Errors: UsageArgument if they do not divide.
int ranks_of_copy(const PipelineOptions& options) {
  const std::int64_t ranks = options.ranks.value_or(options.usual_ranks);
  if (ranks % options.copies() != 0) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("{} expects a divisor of {}, the number of ranks, found {}; change it or "
                    "--ranks",
                    options.ep > options.dp ? "--ep" : "--dp",
                    ranks,
                    options.copies()));
  }
  return to_int(ranks / options.copies());
}

}  // namespace

/// With one stage per rank, the number of stages is the number of ranks.
int ranks_for(const BuilderInfo& builder,
              const PipelineOptions& options,
              const std::optional<std::int64_t>& stages,
              const std::optional<StageGraph>& graph) {
  if (!options.ranks && builder.chunks == ChunkRule::One && (stages || graph)) {
    return stages ? to_int(*stages) : graph->size();
  }
  return ranks_of_copy(options);
}

Choice choose_by_name(const BuilderInfo& builder,
                      const PipelineOptions& options,
                      const StepSize& size,
                      const std::optional<StageGraph>& graph) {
  const int ranks = ranks_for(builder, options, size.stages, graph);
  const int microbatches =
      to_int(size.microbatches_of(options.copies()).value_or(kUsualMicrobatches));
  BuildRequest request{.devices = ranks, .microbatches = microbatches, .set = options.set};
  if (options.chunks) {
    request.chunks = to_int(*options.chunks);
  }
  if (builder.takes_graph) {
    request.graph = graph.value_or(StageGraph::chain(ranks));
  }
  Schedule schedule = in_copies(build_schedule(builder.name, request), to_int(options.copies()));
  Layout layout = Layout::of(schedule);
  const int stages = layout.model_stages();
  if (size.stages && *size.stages != stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("--stages expects {}, as {} makes them of {}, found {}; leave it "
                            "out or change --ranks or --chunks",
                            stages,
                            builder.name,
                            count_text(ranks, "rank"),
                            *size.stages));
  }
  return {.shape = {.stages = stages,
                    .microbatches = layout.units() * microbatches,
                    .microbatch_size = size.microbatch_size,
                    .cut = size.cut},
          .schedule = std::move(schedule),
          .layout = std::move(layout),
          .strategy = std::nullopt};
}

void build_over(const StageGraph& graph, const PipelineOptions& options, Choice& choice) {
  const BuilderInfo* builder = builder_named(options.schedule);
  if (builder != nullptr && builder->takes_graph) {
    replace_schedule(
        build_schedule(
            builder->name,
            {.microbatches = choice.schedule.microbatches(), .graph = graph, .set = options.set}),
        options,
        choice);
  }
}

void build_for(const Costs& costs, const PipelineOptions& options, Choice& choice) {
  const BuilderInfo* builder = builder_named(options.schedule);
  if (builder != nullptr && builder->takes_costs) {
    replace_schedule(build_schedule(builder->name,
                                    {.devices = choice.layout.rows(),
                                     .microbatches = choice.schedule.microbatches(),
                                     .set = options.set,
                                     .costs = costs}),
                     options,
                     choice);
  }
}

}  // namespace stagecraft::tools
