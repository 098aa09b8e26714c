#include "stagecraft/tools/train/job/dry_run.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/wire/program_wire.h"
#include "stagecraft/scheduler/model/surplus.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/schedule/report/surplus_json.h"

namespace stagecraft::tools {
namespace {

/// Returns the graph of the schedule's stages, which knows what every stage trains.
StageGraph graph_of(const TrainJob& job) {
  return job.execution.stage_graph();
}

template <class Id>
std::vector<int> numbers_of(const std::vector<Id>& ids) {
  std::vector<int> numbers;
  for (const Id id : ids) {
    numbers.push_back(id.value);
  }
  return numbers;
}

/// Returns "ranks 0, 2", or the ranks of each set: "ranks 0, 1 and ranks 2, 3".
std::string ranks_text(const PlanGroup& group) {
  std::vector<std::string> sets;
  for (const std::vector<Rank>& set : group.sets) {
    const std::vector<int> members = numbers_of(group.members(set.front()));
    sets.push_back(
        fmt::format("rank{} {}", members.size() == 1 ? "" : "s", fmt::join(members, ", ")));
  }
  return fmt::format("{}", fmt::join(sets, " and "));
}

/// Returns the timeline that --costs predicts. Requires: it was given.
Timeline prediction(const TrainJob& job) {
  return simulate(job.choice.schedule, graph_of(job), job.costs->costs);
}

std::string prediction_text(const TrainJob& job) {
  if (!job.costs) {
    return "";
  }
  const Timeline planned = prediction(job);
  return fmt::format("planned with {}: makespan {:.2f} ms, bubble {:.1f} %\n",
                     job.costs->file,
                     planned.makespan * 1e3,
                     100 * planned.bubble_fraction());
}

std::string as_json(const TrainJob& job) {
  const CompiledProgram& program =
      job.execution.program.compiled();  // every stage once, for any number of replicas
  nlohmann::ordered_json object{{"event", "dry_run"},
                                {"microbatches", job.choice.shape.microbatches},
                                {"instructions", job.execution.plan->instruction_count()},
                                {"stages", nlohmann::ordered_json::array()},
                                {"ranks", nlohmann::ordered_json::array()}};
  for (const StageProgram& stage : program.partition.stages) {
    const wire::TravelSize size = wire::travel_size(stage);
    object["stages"].push_back({{"name", stage.name},
                                {"parameters", stage.parameters.size()},
                                {"weight_bytes", weight_bytes(stage)},
                                {"program_bytes", size.program},
                                {"constant_bytes", size.constants}});
  }
  for (const RankPlan& rank : job.execution.plan->ranks) {
    const RankList& list = job.execution.plan->list_of(rank.rank);
    const RankMemory& bytes = job.ranks[rank.rank.index()];
    object["ranks"].push_back({{"stages", numbers_of(list.stages)},
                               {"instructions", list.instructions.size()},
                               {"weight_bytes", bytes.weights},
                               {"gradient_bytes", bytes.gradients},
                               {"state_bytes", bytes.states},
                               {"borrowed_bytes", bytes.borrowed},
                               {"peak_activation_bytes", bytes.activations}});
  }
  object["sums"] = nlohmann::ordered_json::array();
  object["divided"] = nlohmann::ordered_json::array();
  const PlanTables& tables = job.execution.plan->tables;
  for (const PlanGroup& group : tables.groups) {
    std::vector<std::vector<int>> sets;
    for (const std::vector<Rank>& set : group.sets) {
      sets.push_back(numbers_of(set));
    }
    if (group.kind == PlanGroup::Kind::Divided) {
      object["divided"].push_back({{"group", to_string(tables, group)},
                                   {"stages", numbers_of(group.stages)},
                                   {"ranks", sets}});
      continue;
    }
    const bool tie = group.kind == PlanGroup::Kind::Tie;
    object["sums"].push_back({{"over", tie ? "tie" : "copies"},
                              {"zero", static_cast<int>(group.sharing)},
                              {"parameters", group.parameters},
                              {"stages", numbers_of(group.stages)},
                              {"ranks", sets}});
  }
  if (job.costs) {
    const Timeline planned = prediction(job);
    object["planned"] = {{"costs", job.costs->file},
                         {"makespan_seconds", planned.makespan},
                         {"bubble_fraction", planned.bubble_fraction()}};
  }
  object["surplus"] = surplus_json(find_surplus(job.choice.schedule, graph_of(job)));
  object["memory"] = job.memory.json(job.limits);
  return command_json("train", object);
}

/// Returns what a rank with the stage gets once, beside its weights.
std::string programs_text(const CompiledProgram& program) {
  std::string text = fmt::format(
      "{:>5}  {:>9}  {:>10}  {:>10}  {}\n", "stage", "operators", "program", "constants", "name");
  for (const StageProgram& stage : program.partition.stages) {
    const wire::TravelSize size = wire::travel_size(stage);
    text += fmt::format("{:>5}  {:>9}  {:>10}  {:>10}  {}\n",
                        stage.id.value,
                        stage.operator_count(),
                        bytes_text(static_cast<double>(size.program)),
                        bytes_text(static_cast<double>(size.constants)),
                        stage.name);
  }
  return text;
}

/// Returns what each rank does and holds.
std::string ranks_text(const TrainJob& job) {
  const bool borrows = std::ranges::any_of(job.ranks, &RankMemory::borrowed);
  std::vector<std::string> header{
      "rank", "stages", "instructions", "weights", "gradients", "states"};
  if (borrows) {
    header.emplace_back("borrowed");
  }
  header.insert(header.end(), {"peak activations", "sum"});
  std::vector<std::vector<std::string>> rows;
  const auto text = [](std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  for (const RankPlan& rank : job.execution.plan->ranks) {
    const RankList& list = job.execution.plan->list_of(rank.rank);
    const RankMemory& bytes = job.ranks[rank.rank.index()];
    std::vector<std::string>& row = rows.emplace_back();
    row = {fmt::format("{}", rank.rank.value),
           fmt::format("{}", fmt::join(numbers_of(list.stages), ",")),
           fmt::format("{}", list.instructions.size()),
           text(bytes.weights),
           text(bytes.gradients),
           text(bytes.states)};
    if (borrows) {
      row.push_back(text(bytes.borrowed));
    }
    row.insert(row.end(), {text(bytes.activations), text(bytes.sum())});
  }
  return table_text(header, rows);
}

std::string as_text(const TrainJob& job) {
  const StageGraph graph = graph_of(job);
  std::string text =
      fmt::format("{}\n{}\nplan: {} instructions{} for {}\n{}",
                  job.execution.program.explain(),
                  render(job.choice.schedule, {}, {.graph = &graph}),
                  job.execution.plan->instruction_count(),
                  job.execution.plan->surplus_count() == 0
                      ? ""
                      : fmt::format(" ({} do nothing)", job.execution.plan->surplus_count()),
                  count_text(job.ranks.size(), "rank"),
                  ranks_text(job));
  const PlanTables& tables = job.execution.plan->tables;
  for (const PlanGroup& group : tables.groups) {
    if (group.kind == PlanGroup::Kind::Divided) {
      text += fmt::format("divided: weights of {} among {}, which exchange samples\n",
                          to_string(tables, group),
                          ranks_text(group));
      continue;
    }
    text += fmt::format("summed before the vote: gradients of {} on {}{}\n",
                        to_string(tables, group),
                        ranks_text(group),
                        group.lends_weights() ? ", which share them, weights and optimizer's state"
                        : group.has_rounds()  ? ", which share them and the optimizer's state"
                        : group.has_shards()  ? ", which share the optimizer's state"
                                              : "");
  }
  text += prediction_text(job);
  return fmt::format("{}\n{}\n{}",
                     text,
                     programs_text(job.execution.program.compiled()),
                     job.memory.text(job.limits));
}

}  // namespace

std::string dry_run(const TrainJob& job) {
  return job.options.run.json ? as_json(job) : as_text(job);
}

}  // namespace stagecraft::tools
