#include "stagecraft/tools/train/job/decide.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {
namespace {

/// Limits to the largest int. Builders refuse what no machine can hold, so that stays too large.
int to_int(std::int64_t n) {
  return static_cast<int>(std::min<std::int64_t>(n, std::numeric_limits<int>::max()));
}

std::vector<std::string> builder_names() {
  std::vector<std::string> names;
  for (const BuilderInfo& builder : builders()) {
    names.emplace_back(builder.name);
  }
  return names;
}

/// Reads a schedule of any format. A word that is neither a builder's name nor a file may be a
/// misspelled name.
Schedule read_file(const std::string& path, Console& console) {
  std::error_code ignored;
  if (path != "-" && !std::filesystem::exists(path, ignored)) {
    const bool looks_like_a_name = path.find_first_of("/.") == std::string::npos;
    throw Error(
        looks_like_a_name ? Errc::UsageArgument : Errc::UsageFile,
        fmt::format("--schedule expects a readable schedule file or one of {}, found '{}'; {}"
                    "see stagecraft train --help",
                    fmt::join(builder_names(), ", "),
                    path,
                    did_you_mean(path, builder_names())));
  }
  return read_schedule(path, {}, console).schedule;
}

void check_flag(const char* flag,
                std::optional<std::int64_t> given,
                int fixed,
                const std::string& file) {
  if (given && *given != fixed) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "{} expects {}, as the schedule file '{}' fixes it, found {}; leave {} out or change "
            "the file",
            flag,
            fixed,
            file,
            *given,
            flag));
  }
}

/// Returns "0-2,1-2".
std::string edges_text(const StageGraph& graph) {
  std::vector<std::string> edges;
  for (const auto& [from, to] : graph.edges()) {
    edges.push_back(fmt::format("{}-{}", from, to));
  }
  return fmt::format("{}", fmt::join(edges, ","));
}

/// Returns the graph of --graph, if it is given.
/// Errors: UsageArgument for a graph other than a chain, if the model is a chain.
std::optional<StageGraph> given_graph(const TrainOptions& options,
                                      const ModelStages& model,
                                      Console& console) {
  if (!options.graph) {
    return std::nullopt;
  }
  StageGraph given = read_graph(*options.graph, console);
  if (!model.may_branch && !given.is_chain()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--graph expects a model whose stages are no chain: {}, or one of "
                            "--model-file; found {}, whose stages are {}; leave it out",
                            model.branching,
                            model.name,
                            edges_text(StageGraph::chain(given.size()))));
  }
  return given;
}

/// Returns whether the schedule has no graph of its own: then it is a chain, once per replica.
bool is_chain(const Schedule& schedule, const Layout& layout) {
  return schedule.stage_graph().edges() ==
         layout.expand(StageGraph::chain(layout.model_stages())).edges();
}

/// Returns the graph against which the schedule is checked, as far as it is known.
StageGraph graph_of(const ScheduleChoice& choice) {
  const StageGraph own = choice.schedule.stage_graph();
  if (!is_chain(choice.schedule, choice.layout)) {
    return own;
  }
  StageGraph graph = choice.layout.expand(choice.given.value_or(StageGraph::chain(choice.stages)));
  if (const std::vector<int> sizes = own.microbatch_sizes(); !sizes.empty()) {
    graph.set_microbatch_sizes(sizes);
  }
  return graph;
}

/// Throws with the grid on which every violation is marked, and their texts below it. Keeps SC-1.
void check_rules(const ScheduleChoice& choice, const StageGraph& graph, const std::string& name) {
  const std::vector<Violation> violations =
      validate(choice.schedule, graph, {.microbatches = choice.microbatches});
  if (violations.empty()) {
    return;
  }
  std::string grid = render(choice.schedule, violations, {.graph = &graph});
  grid.erase(grid.find_last_not_of('\n') + 1);
  throw Error(Errc::ScheduleInvalid,
              fmt::format("the schedule '{}' breaks {} rule{}; mend it and run again\n\n{}",
                          name,
                          violations.size(),
                          violations.size() == 1 ? "" : "s",
                          grid));
}

ScheduleChoice from_file(const TrainOptions& options, const ModelStages& model, Console& console) {
  const std::string& file = options.schedule;
  const Schedule schedule = read_file(file, console);
  if (schedule.stages() < 1 || schedule.microbatches() < 1) {
    throw Error(
        Errc::ScheduleParse,
        fmt::format(
            "the schedule file '{}' expects rows of cells such as 0F0, found none; see README.md",
            file));
  }
  Layout layout = Layout::of(schedule);
  if (!model.may_branch && !is_chain(schedule, layout)) {
    throw Error(Errc::UsageArgument,
                fmt::format("the stages of {} are one chain, the schedule file '{}' names other "
                            "edges; leave its @edges out",
                            model.name,
                            file));
  }
  if (!options.model_file && !schedule.stage_graph().frozen().empty()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("all of {} trains, the schedule file '{}' names frozen stages; leave its "
                    "@frozen out",
                    model.name,
                    file));
  }
  const int stages = layout.model_stages();
  if (options.chunks || !options.set.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--chunks and --set are for schedules by name, found the file '{}'; "
                            "leave them out",
                            file));
  }
  check_flag("--stages", options.stages, stages, file);
  check_flag("--ranks", options.ranks, layout.ranks(), file);
  if (options.data && options.microbatches != schedule.microbatches()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--schedule expects a file for {} microbatches, as '{}' has them in a "
                            "step, found {} in '{}'",
                            *options.microbatches,
                            *options.data,
                            schedule.microbatches(),
                            file));
  }
  check_flag("--microbatches", options.microbatches, schedule.microbatches(), file);
  return {schedule, std::move(layout), stages, schedule.microbatches()};
}

ScheduleChoice from_builder(const TrainOptions& options,
                            const std::optional<StageGraph>& given,
                            const BuilderInfo& builder) {
  // With one stage per rank, the number of stages is the number of ranks.
  const bool stages_are_ranks = builder.chunks == ChunkRule::One && !options.ranks;
  const std::int64_t usual = stages_are_ranks && given ? given->size() : options.usual_ranks;
  const int ranks =
      to_int(options.ranks.value_or(stages_are_ranks ? options.stages.value_or(usual) : usual));
  const int microbatches = to_int(options.microbatches.value_or(kDefaultMicrobatches));
  BuildRequest request{.devices = ranks, .microbatches = microbatches, .set = options.set};
  if (options.chunks) {
    request.chunks = to_int(*options.chunks);
  }
  if (builder.takes_graph) {
    request.graph = given.value_or(StageGraph::chain(ranks));
  }
  Schedule schedule = build_schedule(builder.name, request);
  Layout layout = Layout::of(schedule);
  const int stages = layout.model_stages();
  if (options.stages && *options.stages != stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("--stages expects {}, as {} makes them of {} ranks, found {}; leave it "
                            "out or change --ranks or --chunks",
                            stages,
                            builder.name,
                            ranks,
                            *options.stages));
  }
  return {std::move(schedule), std::move(layout), stages, microbatches};
}

}  // namespace

ScheduleChoice choose_schedule(const TrainOptions& options,
                               const ModelStages& model,
                               Console& console) {
  const std::optional<StageGraph> given = given_graph(options, model, console);
  const auto all = builders();
  const auto builder = std::ranges::find(all, options.schedule, &BuilderInfo::name);
  ScheduleChoice choice = builder == all.end() ? from_file(options, model, console)
                                               : from_builder(options, given, *builder);
  choice.given = given;
  if (given && given->size() != choice.stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("--graph expects edges over {} stages, as the schedule '{}' has them, "
                            "found {} over {}; correct it, or change --ranks",
                            choice.stages,
                            options.schedule,
                            edges_text(*given),
                            given->size()));
  }
  check_rules(choice, graph_of(choice), options.schedule);
  return choice;
}

int expected_ranks(const TrainOptions& options, Console& console) {
  const auto all = builders();
  const auto builder = std::ranges::find(all, options.schedule, &BuilderInfo::name);
  if (options.ranks) {
    return to_int(*options.ranks);
  }
  if (builder == all.end()) {
    // Standard input can be read only once, and the job reads it.
    return options.schedule == "-" ? to_int(options.usual_ranks)
                                   : Layout::of(read_file(options.schedule, console)).ranks();
  }
  return to_int(builder->chunks == ChunkRule::One ? options.stages.value_or(options.usual_ranks)
                                                  : options.usual_ranks);
}

ScheduleChoice over_graph(const ScheduleChoice& choice,
                          const TrainOptions& options,
                          const StageGraph& graph) {
  if (choice.given && choice.given->edges() != graph.edges()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--graph expects {}, which feed each other in the model's {} stages, "
                            "found {}; leave it out",
                            edges_text(graph),
                            graph.size(),
                            edges_text(*choice.given)));
  }
  const auto all = builders();
  const auto builder = std::ranges::find(all, options.schedule, &BuilderInfo::name);
  if (builder == all.end() || !builder->takes_graph) {
    return choice;
  }
  ScheduleChoice made = choice;
  made.schedule = build_schedule(
      builder->name, {.microbatches = choice.microbatches, .graph = graph, .set = options.set});
  made.layout = Layout::of(made.schedule);
  return made;
}

ScheduleChoice arranged_for(const ScheduleChoice& choice,
                            const TrainOptions& options,
                            const Costs& costs) {
  const auto all = builders();
  const auto builder = std::ranges::find(all, options.schedule, &BuilderInfo::name);
  if (builder == all.end() || !builder->takes_costs) {
    return choice;
  }
  ScheduleChoice made = choice;
  made.schedule = build_schedule(builder->name,
                                 {.devices = choice.layout.rows(),
                                  .microbatches = choice.microbatches,
                                  .set = options.set,
                                  .costs = costs});
  made.layout = Layout::of(made.schedule);
  return made;
}

}  // namespace stagecraft::tools
