#include "stagecraft/tools/train/job/job.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/cut/cut_file.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/planned_bytes.h"
#include "stagecraft/compiler/shapes/replicate.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/status_line.h"
#include "stagecraft/tools/program/cut_option.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/job/run_costs.h"
#include "stagecraft/tools/train/job/threads.h"
#include "stagecraft/tools/train/options/places.h"

namespace stagecraft::tools {
namespace {

/// Checks a lower bound. Only one fact about a step is certain yet: one microbatch passes through
/// it, or through one stage after the other, if stages are recomputed. Called before the model is
/// compiled, as that may take more memory than there is.
void check_least(const TrainOptions& options,
                 const ScheduleChoice& choice,
                 const WorkBytes& bytes,
                 const std::vector<MemoryLimit>& limits) {
  const bool recomputes = options.recompute != Recompute::nothing();
  const MemoryBill least(
      options,
      choice,
      bytes,
      recomputes ? bytes.microbatch / static_cast<double>(choice.stages) : bytes.microbatch);
  check_fits(least, options.dry_run ? least.to_compile() : least.to_run(), limits);
}

/// Returns whether the optimizer keeps state for the parameter.
bool is_optimized(const std::vector<ParameterGroup>& groups, const StageParameter& parameter) {
  return parameter.trained && !rule_of(groups, DecayOn::All, Optimizer(), parameter.name, 0).frozen;
}

/// Adds what is known once the model was compiled.
void complete(WorkBytes& bytes, const TrainOptions& options, const Program& program) {
  double kept = 0.0;
  double optimized = 0.0;
  const std::vector<ParameterGroup> groups = make_groups(options);
  for (const StageProgram& stage : program.compiled().partition.stages) {
    kept += static_cast<double>(stage.saved_bytes);
    bytes.on_stages += static_cast<double>(weight_bytes(stage));
    for (const StageParameter& parameter : stage.parameters) {
      const Value& facts = stage.at(parameter.value);
      optimized += is_optimized(groups, parameter)
                       ? static_cast<double>(c10::multiply_integers(facts.sizes)) *
                             static_cast<double>(c10::elementSize(facts.dtype))
                       : 0.0;
    }
  }
  bytes.optimized = optimized;
  bytes.microbatch = bytes.microbatch == 0.0 ? kept : bytes.microbatch;
}

/// A run of hours must not fail at its end because a folder cannot take its weights.
void check_weights(const TrainOptions& options, const Work& work, const Program& program) {
  if (!options.save_weights) {
    return;
  }
  std::vector<NamedTensor> all = program.compiled().graph.parameters;
  const std::vector<NamedTensor>& buffers = program.compiled().graph.buffers;
  all.insert(all.end(), buffers.begin(), buffers.end());
  std::vector<std::string> names;
  for (const NamedTensor& t : work.all_names(std::move(all))) {
    names.push_back(t.name);
  }
  try {
    check_weights_place(*options.save_weights, names);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--save-weights: {}", error.message()));
  }
}

/// Takes the number of stages from the cut.
TrainOptions with_stages_of(const std::optional<Cut>& cut, TrainOptions options) {
  const std::optional<int> stages = cut ? stages_of(*cut) : std::nullopt;
  if (stages && options.stages && *options.stages != *stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("--stages expects {}, as --cut makes them, found {}; leave it out",
                            *stages,
                            *options.stages));
  }
  options.stages = stages ? *stages : options.stages;
  return options;
}

/// Takes the size of microbatches from the cut: a plan for one size trains with that size.
TrainOptions with_size_of_cut(TrainOptions options) {
  if (!options.model_file && !options.size_given) {
    options.microbatch_size =
        microbatch_size_of_cut(options.cut).value_or(static_cast<int>(options.microbatch_size));
  }
  return options;
}

/// Evaluations have microbatches of one size.
void check_sizes(const TrainOptions& options, const ScheduleChoice& choice) {
  if (options.eval_every && !choice.schedule.stage_graph().microbatch_sizes().empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--eval-every expects stages that take the same microbatches, the "
                            "schedule '{}' has sizes; leave --eval-every out",
                            options.schedule));
  }
}

ModelStages stages_of(const TrainOptions& options) {
  return {.name = options.model_file.value_or(options.model),
          .may_branch = options.model_file || find_model(options.model).may_branch,
          .branching = names_of_models(&ModelEntry::may_branch)};
}

void check_patterns(const TrainOptions& options, const Program& program) {
  try {
    const std::vector<ParameterGroup> groups = make_groups(options);
    check_groups(groups, make_optimizer(options));
    check_groups_match(groups, program.parameter_names());
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--freeze, --no-decay: {}", error.message()));
  }
}

/// Writes the cut and, for a dry run, its costs.
void write_files(const TrainJob& job, Console& console) {
  const TrainOptions& o = job.options;
  if (o.cut_out) {
    write_output(*o.cut_out, write_cut(job.program.cut()), console);
  }
  if (o.dry_run && job.costs_out) {
    write_output(*o.costs_out, to_json(*job.costs_out), console);
  }
}

/// Returns the costs that predict the schedule. Rearranges the schedule for them first, if its
/// builder uses costs. `given`: --costs.
std::optional<PlannedWith> arrange(ScheduleChoice& choice,
                                   const std::optional<PlannedWith>& given,
                                   const TrainOptions& options,
                                   const Program& program) {
  if (!given) {
    return std::nullopt;
  }
  PlannedWith costs = costs_of_schedule(*given, options, choice, program);
  choice = arranged_for(choice, options, costs.costs);
  check(program, choice.schedule).or_throw();
  return costs;
}

double planned_activation_bytes(const Program& program, const Plan& plan) {
  double bytes = 0.0;
  for (const RankPlan& rank : plan.ranks) {
    bytes += static_cast<double>(peak_activation_bytes(program.compiled(), rank));
  }
  return bytes;
}

}  // namespace

TrainJob make_job(const TrainOptions& asked, Console& console) {
  (void)make_optimizer(asked);
  check_places(asked);
  const TrainOptions given = with_size_of_cut(asked);
  const std::optional<PlannedWith> costs = given_costs(given, console);
  std::unique_ptr<Work> work = open_work(given, memory_left());
  const std::optional<Cut> cut = cut_option(given.cut);
  TrainOptions options = with_stages_of(cut, work->settled(given));
  std::optional<PlannedRun> planned;
  if (options.plan) {
    planned = plan_run(options, *work, console);
    options.microbatches = planned->best().microbatches;
    options.microbatch_size = planned->best().candidate.microbatch_size;
    work.reset();  // free its memory before the next takes as much
    work = open_work(options, memory_left());
  }
  StatusLine line(console, options.json);
  line.say("the schedule ...");
  ScheduleChoice choice =
      planned ? planned->choice : choose_schedule(options, stages_of(options), console);
  choice.cut = planned ? choice.cut : cut;
  WorkBytes bytes = work->bytes(choice);
  const int threads = options.dry_run ? 0 : threads_to_run(options, choice);
  check_threads(threads);
  std::vector<MemoryLimit> limits = memory_limits(threads);
  if (!options.force) {
    check_least(options, choice, bytes, limits);
  }
  line.say("the model's operators ...");
  Program program = compile_in(options.precision, *work, choice);
  line.say("what the model's stages allow ...");
  choice = over_graph(choice, options, program.stage_graph());
  check(program, choice.schedule).or_throw();
  std::optional<PlannedWith> planned_with = arrange(choice, costs, options, program);
  check_sizes(options, choice);
  check_weights(options, *work, program);
  check_patterns(options, program);
  complete(bytes, options, program);
  line.say(fmt::format("the plans of {} ranks ...", choice.layout.ranks()));
  Program laid_out =
      replicate(resize(program, choice.schedule.stage_graph().microbatch_sizes()), choice.layout);
  Plan plan = lower_schedule(laid_out, choice.schedule, choice.layout, /*training=*/true);
  MemoryBill memory(options, choice, bytes, planned_activation_bytes(laid_out, plan));
  if (!options.force && !options.dry_run) {
    check_fits(memory, memory.to_run(), limits);
  }
  std::optional<Costs> costs_out;
  if (options.costs_out) {
    line.say("what the model's operators take ...");
    costs_out = costs_before_run(costs, planned_with, options, choice, program, *work);
  }
  TrainJob job{options,
               std::move(work),
               std::move(choice),
               std::move(program),
               std::move(laid_out),
               std::move(plan),
               std::move(memory),
               std::move(limits),
               std::move(planned),
               std::move(planned_with),
               std::move(costs_out)};
  write_files(job, console);
  return job;
}

Optimizer make_optimizer(const TrainOptions& options) {
  Optimizer optimizer = optimizer_named(options.optimizer).value();
  if (auto* adamw = std::get_if<AdamW>(&optimizer)) {  // usual values for language models
    adamw->beta2 = 0.95;
    adamw->weight_decay = 0.1;
  }
  bool known = set_setting(optimizer, "lr", options.rate);
  for (const auto& [name, value] : options.settings) {
    known = set_setting(optimizer, name, value) && known;
  }
  SC_CHECK(known, "the settings are those of the optimizer");
  check_optimizer(optimizer);
  return optimizer;
}

std::vector<ParameterGroup> make_groups(const TrainOptions& options) {
  std::vector<ParameterGroup> groups;
  for (const std::string& pattern : options.freeze) {
    groups.push_back({.match = pattern, .frozen = true});
  }
  for (const std::string& pattern : options.no_decay) {
    groups.push_back({.match = pattern, .weight_decay = 0.0});
  }
  return groups;
}

DecayOn make_decay_on(const TrainOptions& options) {
  return options.decay_on == DecayKind::All ? DecayOn::All : DecayOn::Matrices;
}

LearningRate make_learning_rate(const TrainOptions& options) {
  const std::map<RateKind, LearningRate::Kind> kinds{
      {RateKind::Constant, LearningRate::Kind::Constant},
      {RateKind::Cosine, LearningRate::Kind::Cosine},
      {RateKind::Linear, LearningRate::Kind::Linear}};
  return {
      .kind = kinds.at(options.rate_kind), .warmup = options.warmup, .total_steps = options.steps};
}

}  // namespace stagecraft::tools
