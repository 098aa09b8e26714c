#include "stagecraft/tools/train/job/job.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/master_weights.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/cut/cut_file.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/planned_bytes.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/status_line.h"
#include "stagecraft/tools/train/catalog/open_work.h"
#include "stagecraft/tools/train/decide/decide.h"
#include "stagecraft/tools/train/decide/gpu_memory.h"
#include "stagecraft/tools/train/decide/run_costs.h"
#include "stagecraft/tools/train/job/memory_check.h"
#include "stagecraft/tools/train/job/places.h"
#include "stagecraft/tools/train/job/strategy_file.h"
#include "stagecraft/tools/train/job/threads.h"
#include "stagecraft/tools/train/job/verify_order.h"
#include "stagecraft/tools/train/options/update_rule.h"
#include "stagecraft/tools/train/report/error_for_user.h"

namespace stagecraft::tools {
namespace {

/// Checks a lower bound. Only one fact about a step is certain yet: one microbatch passes through
/// it, or through one stage after the other, if stages are recomputed. Called before the model is
/// compiled, as that may take more memory than there is.
void check_least(const TrainOptions& options,
                 const Choice& choice,
                 const WorkBytes& bytes,
                 const std::vector<MemoryLimit>& limits) {
  const bool recomputes = options.pipeline.recompute != Recompute::nothing();
  // At most all values are of a type of half the size.
  const double least =
      options.pipeline.precision == Precision::Float32 ? bytes.microbatch : bytes.microbatch / 2;
  check_memory(options,
               choice,
               bytes,
               recomputes ? least / static_cast<double>(choice.shape.stages) : least,
               limits);
}

/// Returns whether the optimizer keeps state for the parameter.
bool is_optimized(const std::vector<ParameterGroup>& groups, const StageParameter& parameter) {
  return parameter.trained && !rule_of(groups, DecayOn::All, Optimizer(), parameter.name, 0).frozen;
}

/// Adds what is known once the model was compiled.
void complete(WorkBytes& bytes, const TrainOptions& options, const Program& program) {
  double kept = 0.0;
  double optimized = 0.0;
  bytes.masters = 0.0;
  const std::vector<ParameterGroup> groups = make_groups(options.optimizer);
  for (const StageProgram& stage : program.compiled().partition.stages) {
    kept += static_cast<double>(stage.saved_bytes + stage.replayed_bytes());
    bytes.on_stages += static_cast<double>(weight_bytes(stage));
    for (const StageParameter& parameter : stage.parameters) {
      if (is_optimized(groups, parameter)) {
        const Value& facts = stage.at(parameter.value);
        const c10::ScalarType type = kept_type(options.optimizer, facts.dtype);
        const double state = static_cast<double>(c10::multiply_integers(facts.sizes)) *
                             static_cast<double>(c10::elementSize(type));
        optimized += state;
        bytes.masters += type != facts.dtype ? state : 0.0;
      }
    }
  }
  bytes.optimized = optimized;
  bytes.microbatch = kept;
}

/// A run of hours must not fail at its end because a folder cannot take its weights.
void check_weights(const TrainOptions& options, const Work& work, const Program& program) {
  if (!options.keeping.save_weights) {
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
    check_weights_place(*options.keeping.save_weights, names);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--save-weights: {}", error.message()));
  }
}

/// Errors: UsageArgument, in the words of the command.
void check_masters(const TrainOptions& options, const Program& program) {
  try {
    if (options.optimizer.master_weights) {
      check_master_weights(program.compiled().graph.parameters);
    }
  } catch (const Error& error) {
    throw error_for_user(error, options);
  }
}

void check_patterns(const TrainOptions& options, const Program& program) {
  try {
    const std::vector<ParameterGroup> groups = make_groups(options.optimizer);
    check_groups(groups, make_optimizer(options.optimizer));
    check_groups_match(groups, program.parameter_names());
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("--freeze, --freeze-for, --no-decay: {}", error.message()));
  }
}

/// Writes cut and strategy and, for a dry run, its costs.
void write_files(const TrainJob& job, Console& console) {
  const TrainOptions& o = job.options;
  if (o.pipeline.cut_out) {
    write_output(*o.pipeline.cut_out, write_cut(job.execution.program.cut()), console);
  }
  if (o.pipeline.strategy_out) {
    write_output(*o.pipeline.strategy_out, strategy_file(job), console);
  }
  if (o.run.dry_run && job.costs_out) {
    write_output(*o.costs.out, to_json(*job.costs_out), console);
  }
}

/// Returns the bytes of mirrors: two copies of each rank's state in its process, and two in that of
/// the next rank (mirror.h). A rank has no more buffers than the model.
double mirror_bytes(const std::vector<RankMemory>& ranks, double buffers) {
  constexpr double kCopies = 4.0;
  double state = 0.0;
  for (const RankMemory& rank : ranks) {
    state += static_cast<double>(rank.weights + rank.states);
  }
  return kCopies * (state + buffers * static_cast<double>(ranks.size()));
}

/// Returns whether ranks keep mirrors: if --mirror says so or --attach needs them, else where they
/// help and memory suffices.
bool keeps_mirrors(const WorkerOptions& options,
                   const std::vector<RankMemory>& ranks,
                   const MemoryBill& with,
                   const std::vector<MemoryLimit>& limits) {
  return options.attach ||
         (options.restarts > 0 && options.mirror.value_or(ranks.size() > 1 && with.fits(limits)));
}

double planned_activation_bytes(const Program& program, const Plan& plan) {
  double bytes = 0.0;
  for (const RankPlan& rank : plan.ranks) {
    bytes += static_cast<double>(
        peak_activation_bytes(program.compiled(), plan.tables, plan.list_of(rank.rank)));
  }
  return bytes;
}

}  // namespace

WorkRequest work_request(const TrainOptions& options, const RunStart& start) {
  return {.model = options.model,
          .data = options.data,
          .seed = start.seed,
          .recompute = options.pipeline.recompute,
          .weights = start.weights,
          .evaluates = options.run.eval_every.has_value(),
          .evaluation = options.run.eval_data};
}

TrainJob make_job(const TrainOptions& options, const RunStart& start, Console& console) {
  (void)make_optimizer(options.optimizer);
  check_places(options, start);
  std::unique_ptr<Work> work = open_work(work_request(options, start), memory_left());
  StatusLine line(console, options.run.json || options.run.quiet);
  WorkBytes bytes;
  std::vector<MemoryLimit> limits;
  const auto compile = [&](const Choice& choice) {
    bytes = work->bytes(choice.shape);
    const int threads =
        options.run.dry_run
            ? 0
            : threads_to_run(choice.layout.ranks(), static_cast<int>(options.workers.threads));
    check_threads(threads);
    limits = memory_limits(threads);
    if (const auto gpus = gpu_memory(options, choice.layout.ranks())) {
      limits.push_back(*gpus);
    }
    if (!options.run.force) {
      check_least(options, choice, bytes, limits);
    }
    line.say("compiling the model ...");
    Program program = compile_in(options.pipeline.precision, *work, choice.shape);
    line.say(fmt::format("making the plans of {} ...", count_text(choice.layout.ranks(), "rank")));
    return program;
  };
  if (!options.planner.name) {  // a planner reports by itself
    line.say("choosing the schedule ...");
  }
  Decision decision = decide(options, *work, compile, console);
  const Choice& choice = decision.choice;
  const Execution& execution = decision.execution;
  const Program& program = execution.program;
  check_weights(options, *work, program);
  check_patterns(options, program);
  check_masters(options, program);
  complete(bytes, options, program);
  bytes.on_ranks = 0.0;
  std::vector<RankMemory> ranks = memory_of_ranks(execution, options.optimizer);
  for (const RankMemory& rank : ranks) {
    *bytes.on_ranks += static_cast<double>(rank.weights + rank.gradients + rank.states);
  }
  if (options.run.verify) {
    bytes.one_process = one_process_bytes(verify_order(execution, choice), program);
  }
  const double activations = planned_activation_bytes(execution.sized, *execution.plan);
  WorkBytes with_mirrors = bytes;
  with_mirrors.mirrors = mirror_bytes(ranks, bytes.buffers);
  const bool mirrors = keeps_mirrors(
      options.workers, ranks, MemoryBill(options, choice, with_mirrors, activations), limits);
  bytes = mirrors ? with_mirrors : bytes;
  if (!options.run.force && !options.run.dry_run) {
    check_memory(options, choice, bytes, activations, limits);
  }
  MemoryBill memory(options, choice, bytes, activations);
  std::optional<Costs> costs_out;
  if (options.costs.out) {
    line.say("measuring the operators ...");
    costs_out = costs_before_run(
        decision.costs_file, decision.costs, options.workers, choice, program, *work);
  }
  TrainJob job{options,
               start,
               std::move(work),
               std::move(decision.choice),
               std::move(decision.execution),
               std::move(memory),
               mirrors,
               std::move(ranks),
               std::move(limits),
               std::move(decision.planned),
               std::move(decision.costs),
               std::move(costs_out)};
  write_files(job, console);
  return job;
}

}  // namespace stagecraft::tools
