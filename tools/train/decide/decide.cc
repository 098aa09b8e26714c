#include "stagecraft/tools/train/decide/decide.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/input/named_schedule.h"
#include "stagecraft/tools/schedule/input/strategy_input.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/decide/run_costs.h"
#include "stagecraft/tools/train/decide/schedule_by_name.h"
#include "stagecraft/tools/train/decide/schedule_from_file.h"
#include "stagecraft/tools/train/decide/step_size.h"
#include "stagecraft/tools/train/decide/strategy_from_file.h"

namespace stagecraft::tools {
namespace {

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
std::optional<StageGraph> graph_asked(const TrainOptions& options, Console& console) {
  if (!options.pipeline.graph) {
    return std::nullopt;
  }
  StageGraph graph = read_graph(*options.pipeline.graph, console);
  const std::string& model = options.model.name;
  if (!options.model.file && !find_model(model).may_branch && !graph.is_chain()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--graph expects a model whose stages are no chain: {}, or one of "
                            "--model-file; found {}, whose stages are {}; leave it out",
                            names_of_models(&ModelEntry::may_branch),
                            model,
                            edges_text(StageGraph::chain(graph.size()))));
  }
  return graph;
}

/// Returns the graph against which the schedule is checked before the model is compiled.
StageGraph graph_before_program(const Choice& choice, const std::optional<StageGraph>& asked) {
  const StageGraph own = choice.schedule.stage_graph();
  if (!is_chain(choice.schedule, choice.layout)) {
    return own;
  }
  StageGraph graph = choice.layout.expand(asked.value_or(StageGraph::chain(choice.shape.stages)));
  if (const std::vector<int> sizes = own.microbatch_sizes(); !sizes.empty()) {
    graph.set_microbatch_sizes(sizes);
  }
  return graph;
}

/// Throws with the grid on which every violation is marked, and their texts below it. Keeps SC-1.
void check_rules(const Choice& choice, const StageGraph& graph, const std::string& name) {
  const std::vector<Violation> violations =
      validate(choice.schedule, graph, {.microbatches = choice.schedule.microbatches()});
  if (violations.empty()) {
    return;
  }
  std::string grid = render(choice.schedule, violations, {.graph = &graph});
  grid.erase(grid.find_last_not_of('\n') + 1);
  throw Error(Errc::ScheduleInvalid,
              fmt::format("the schedule '{}' breaks {}; correct it and run again\n\n{}",
                          name,
                          count_text(violations.size(), "rule"),
                          grid));
}

Choice choose_by_options(const TrainOptions& options,
                         const StepSize& size,
                         const std::optional<StageGraph>& graph,
                         Console& console) {
  if (options.pipeline.strategy) {
    return choose_from_strategy(options, size, graph, console);
  }
  const std::string& name = options.pipeline.schedule;
  const BuilderInfo* builder = builder_named(name);
  Choice choice = builder != nullptr ? choose_by_name(*builder, options.pipeline, size, graph)
                                     : choose_from_file(options, size, console);
  if (graph && graph->size() != choice.shape.stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("--graph expects edges over {}, as the schedule '{}' has them, "
                            "found {} over {}; correct it, or change --ranks",
                            count_text(choice.shape.stages, "stage"),
                            name,
                            edges_text(*graph),
                            graph->size()));
  }
  check_rules(choice, graph_before_program(choice, graph), name);
  return choice;
}

Choice choose_by_plan(const PlannedRun& planned) {
  const PlanProposal& best = planned.best();
  Layout layout = Layout::of(best.candidate.schedule);
  return {.shape = {.stages = layout.model_stages(),
                    .microbatches = best.microbatches,
                    .microbatch_size = best.candidate.microbatch_size,
                    .cut = planned.cut},
          .schedule = best.candidate.schedule,
          .layout = std::move(layout),
          .strategy = std::nullopt};
}

void check_graph(const std::optional<StageGraph>& asked, const StageGraph& graph) {
  if (asked && asked->edges() != graph.edges()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--graph expects {}, the edges between the {} stages of the model, "
                            "found {}; leave it out",
                            edges_text(graph),
                            graph.size(),
                            edges_text(*asked)));
  }
}

/// Errors: UsageArgument if copies are to share something and no stage can.
void check_sharing(const PipelineOptions& options, const Plan& plan) {
  const bool copies = std::ranges::any_of(plan.tables.groups, [](const PlanGroup& group) {
    return group.kind == PlanGroup::Kind::Copies;
  });
  if (options.bucket_bytes && !copies) {
    throw Error(Errc::UsageArgument,
                "--bucket-size expects copies of the pipeline, which sum their gradients, and this "
                "run has none; add --dp, or leave --bucket-size out");
  }
  if (options.zero > 0 && std::ranges::none_of(plan.tables.groups, &PlanGroup::has_shards)) {
    throw Error(
        Errc::UsageArgument,
        copies
            ? "--zero expects a stage that trains, whose copies can share what they hold, and this "
              "run has none; leave --zero out"
            : "--zero expects copies of the pipeline, which share what they hold, and this run "
              "has none; add --dp, or leave --zero out");
  }
}

/// Evaluations have microbatches of one size.
void check_evaluation(const TrainOptions& options, const Choice& choice) {
  if (options.run.eval_every && !choice.schedule.stage_graph().microbatch_sizes().empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--eval-every expects stages that take the same microbatches, and the "
                            "schedule '{}' has sizes; leave --eval-every out",
                            options.pipeline.schedule));
  }
}

}  // namespace

ReplicateOptions sharing_of(const PipelineOptions& options, Sharing level) {
  ReplicateOptions sharing{.bucket_bytes = options.bucket_bytes};
  sharing.share(level);
  return sharing;
}

Decision decide(const TrainOptions& options,
                Work& work,
                const CompileChoice& compile,
                Console& console) {
  const StepSize size = step_size(options, work);
  const std::optional<PlannedWith> costs_file = given_costs(options.costs, console);
  const std::optional<StageGraph> graph = graph_asked(options, console);
  std::optional<PlannedRun> planned;
  if (options.planner.name) {
    planned = plan_run(options, size, work, console);
  }
  Choice choice =
      planned ? choose_by_plan(*planned) : choose_by_options(options, size, graph, console);
  choice.steps = steps_of(options, size, choice.shape);
  choice.copies = sharing_of(
      options.pipeline,
      planned ? planned->best().candidate.sharing : static_cast<Sharing>(options.pipeline.zero));

  const Program program = compile(choice);
  check_graph(graph, program.stage_graph());
  if (!choice.strategy) {
    build_over(program.stage_graph(), options.pipeline, choice);
  }
  const std::string_view divided = options.pipeline.ep > 1 ? kExpertTag : std::string_view();
  const auto parts = static_cast<int>(options.pipeline.ep);
  Execution execution =
      choice.strategy ? make_execution(program, *choice.strategy)
                      : make_execution(program, choice.schedule, choice.copies, divided, parts);
  check_sharing(options.pipeline, *execution.plan);
  choice.schedule = execution.schedule;
  choice.layout = execution.layout;

  std::optional<PlannedWith> costs;
  if (costs_file) {
    costs = costs_of_schedule(*costs_file, options.workers, choice, program);
    if (!choice.strategy) {
      build_for(costs->costs, options.pipeline, choice);
    }
    if (choice.schedule != execution.schedule) {
      execution = make_execution(program, choice.schedule, choice.copies, divided, parts);
    }
  }
  check_evaluation(options, choice);
  return {
      std::move(choice), std::move(execution), std::move(planned), costs_file, std::move(costs)};
}

int expected_ranks(const TrainOptions& options, Console& console) {
  const PipelineOptions& pipeline = options.pipeline;
  const auto copies = static_cast<int>(pipeline.copies());
  if (pipeline.ranks) {
    return static_cast<int>(*pipeline.ranks);
  }
  const std::string& file = pipeline.strategy.value_or(pipeline.schedule);
  if (file == "-") {  // standard input can be read only once, and the job reads it
    return static_cast<int>(pipeline.usual_ranks);
  }
  if (pipeline.strategy) {
    return ranks_of(read_strategy(file, "--strategy", console));
  }
  if (const BuilderInfo* builder = builder_named(pipeline.schedule)) {
    return copies * ranks_for(*builder, pipeline, pipeline.stages, std::nullopt);
  }
  return copies * Layout::of(read_schedule_file(pipeline, console)).ranks();
}

}  // namespace stagecraft::tools
