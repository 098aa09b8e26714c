#include "stagecraft/tools/train/run/run.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <ostream>
#include <set>
#include <utility>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/trainer/checkpoint.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/lack_of_memory.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/compiler/shapes/sample_rows.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/scheduler/notes/accumulation.h"
#include "stagecraft/tools/plan/report.h"
#include "stagecraft/tools/program/cut_option.h"
#include "stagecraft/tools/train/report/told_error.h"
#include "stagecraft/tools/train/run/local_work.h"
#include "stagecraft/tools/train/run/weights_hash.h"

namespace stagecraft::tools {
namespace {

constexpr int kPlansTold = 3;

ReferenceOptions reference_options(const TrainOptions& options) {
  return {.learning_rate = make_learning_rate(options),
          .groups = make_groups(options),
          .decay_on = make_decay_on(options),
          .clip = options.clip,
          .seed = options.seed,
          .threads = static_cast<int>(options.threads_per_worker)};
}

std::optional<std::int64_t> memory_limit(const TrainOptions& options) {
  constexpr std::int64_t kMiB = 1024 * 1024;
  return options.memory_limit ? std::optional(*options.memory_limit * kMiB) : std::nullopt;
}

TrainerOptions trainer_options(const TrainOptions& options) {
  TrainerOptions made{.learning_rate = make_learning_rate(options),
                      .groups = make_groups(options),
                      .decay_on = make_decay_on(options),
                      .clip = options.clip,
                      .seed = options.seed,
                      .threads_per_worker = static_cast<int>(options.threads_per_worker),
                      .memory_limit = memory_limit(options),
                      .record_timeline = true,
                      .mirror = options.mirror};
  if (options.step_deadline) {
    made.step_deadline =
        std::chrono::milliseconds(static_cast<std::int64_t>(*options.step_deadline * 1000.0));
  }
  return made;
}

bool saves(const TrainOptions& options) {
  return options.save || options.save_weights || options.save_module || options.save_dir;
}

/// Returns the file for which a run continues without a reader of its output; null if there is
/// none.
const std::string* kept_by(const TrainOptions& options) {
  for (const auto* file : {&options.save,
                           &options.save_weights,
                           &options.save_module,
                           &options.save_dir,
                           &options.metrics,
                           &options.costs_out,
                           &options.trace}) {
    if (*file) {
      return &**file;
    }
  }
  return nullptr;
}

/// Returns totals with the model's stages of each rank: "2" or "0,3".
std::vector<RankTotals> empty_totals(const Layout& layout) {
  std::vector<RankTotals> totals(static_cast<std::size_t>(layout.ranks()));
  for (std::size_t rank = 0; rank < totals.size(); ++rank) {
    std::string& stages = totals[rank].stages;
    for (const StageId stage : layout.stages_of(Rank(rank))) {
      stages += fmt::format("{}{}", stages.empty() ? "" : ",", layout.model_stage(stage).value);
    }
  }
  return totals;
}

std::vector<std::string> stages_of(const std::vector<RankTotals>& ranks) {
  std::vector<std::string> stages;
  for (const RankTotals& rank : ranks) {
    stages.push_back(rank.stages);
  }
  return stages;
}

double compute_seconds(const RankTimes& times) {
  return times.forward + times.backward + times.update;
}

std::string slowest_of(const std::vector<RankTimes>& ranks, const std::vector<RankTotals>& totals) {
  const auto slowest =
      std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
        return compute_seconds(a) < compute_seconds(b);
      });
  const std::string& stages = totals[static_cast<std::size_t>(slowest - ranks.begin())].stages;
  return fmt::format("{} {}", stages.find(',') == std::string::npos ? "stage" : "stages", stages);
}

/// Returns a part of the reference's state under the module's names, which lack its kinds. `kind`:
/// kWeight or kBuffer. A tensor of several stages comes from the first, as in a trainer.
NamedTensors state_of(const Reference& reference, std::string_view kind) {
  NamedTensors all;
  for (const StateTensor& state : reference.state()) {
    const std::string name = state.name.starts_with(kind) ? state.name.substr(kind.size()) : "";
    const auto same_name = [&](const auto& named) { return named.first == name; };
    if (!name.empty() && std::ranges::none_of(all, same_name)) {
      all.emplace_back(name, state.tensor);
    }
  }
  return all;
}

/// Returns each tensor once, under the name that the program uses.
NamedTensors first_names(const Program& program, const std::vector<NamedTensor>& all) {
  std::set<std::string> further;
  for (const StateName& known : program.compiled().state_names) {
    if (known.name != known.first) {
      further.insert(known.name);
    }
  }
  NamedTensors first;
  for (const NamedTensor& t : all) {
    if (!further.contains(t.name)) {
      first.emplace_back(t.name, t.tensor);
    }
  }
  return first;
}

/// Returns the entries of `all` that `wanted` also has, in its order.
NamedTensors select(const NamedTensors& all, const NamedTensors& wanted) {
  const std::map<std::string, at::Tensor> by_name(all.begin(), all.end());
  NamedTensors found;
  for (const auto& [name, tensor] : wanted) {
    if (const auto at = by_name.find(name); at != by_name.end()) {
      found.emplace_back(*at);
    }
  }
  return found;
}

/// The trainer has read the same file before, so the file has all of the model.
void start_from(Reference& reference, const Checkpoint& checkpoint) {
  std::map<std::string, at::Tensor> saved;
  for (const StateTensor& state : checkpoint.tensors) {
    saved.emplace(state.name, state.tensor);
  }
  const at::NoGradGuard no_grad;
  for (const StateTensor& state : reference.state()) {
    state.tensor.copy_(saved.at(state.name));
  }
  reference.set_steps(checkpoint.step);
}

SpawnOptions spawn_options(const TrainOptions& options) {
  SpawnOptions spawn = spawn_options_of_env();
  spawn.workers_come = options.workers == WorkerKind::Joining;
  spawn.credentials = options.credentials.value_or(spawn.credentials);
  spawn.processor = options.processor;
  spawn.tell = [](const std::string& line) { std::cerr << "train: " + line + "\n"; };
  return spawn;
}

constexpr const char* kNowhere = "no stage";

std::string stage_of(const CompiledProgram& program, const std::string& name) {
  const auto has = [&](const auto& all) {
    return std::ranges::any_of(all, [&](const auto& one) { return one.name == name; });
  };
  for (const StageProgram& stage : program.partition.stages) {
    if (has(stage.parameters) || has(stage.buffers)) {
      return fmt::format("stage {}", stage.id.value);
    }
  }
  return kNowhere;
}

}  // namespace

std::optional<Cluster> make_held_cluster(const TrainOptions& options, Console& console) {
  if (options.processor == ProcessorChoice::Own || options.workers == WorkerKind::Threads ||
      options.dry_run) {
    return std::nullopt;
  }
  return Cluster::spawn(expected_ranks(options, console), spawn_options(options));
}

Cluster make_cluster(const TrainJob& job, const std::optional<Cluster>& held) {
  const int ranks = job.choice.layout.ranks();
  if (job.options.workers == WorkerKind::Threads) {
    return Cluster::local(ranks);
  }
  const SpawnOptions spawn = spawn_options(job.options);
  if (held && held->ranks() < ranks) {
    throw Error(Errc::UsageArgument,
                fmt::format("--processor common starts the workers before the model is made, and "
                            "started {} for the {} ranks of the schedule: give --ranks {}",
                            held->ranks(),
                            ranks,
                            ranks));
  }
  if (const int most = ranks - spawn.local_ranks;
      spawn.workers_come && spawn.workers_coming > most) {
    throw Error(Errc::UsageArgument,
                fmt::format("the schedule has {} ranks, and {} processes were started for them: "
                            "start as many (in a step of Slurm srun --ntasks {}), or give --ranks",
                            ranks,
                            spawn.local_ranks + spawn.workers_coming,
                            ranks));
  }
  return held ? *held : Cluster::spawn(ranks, spawn);
}

TrainRun::TrainRun(const TrainJob& job, const Cluster& cluster, Console& console)
    : job_(job),
      console_(console),
      cluster_(cluster),
      output_(console),
      form_(progress_form(job.options.json)),
      progress_(make_progress(form_, output_)),
      local_(job.options.read_on_workers ? std::optional(first_local_batch(job)) : std::nullopt),
      rows_(sample_rows(job.work->batch(0, job.choice).inputs)),
      trainer_(cluster,
               job.program,
               job.choice.schedule,
               make_optimizer(job.options),
               trainer_options(job.options)),
      verifier_(reordered_accumulation(job.choice.schedule,
                                       job.choice.layout.expand(job.program.stage_graph()))),
      totals_(empty_totals(job.choice.layout)) {
  if (job.options.verify) {
    reference_.emplace(resize(job.program, job.choice.schedule.stage_graph().microbatch_sizes()),
                       make_optimizer(job.options),
                       reference_options(job.options));
  }
  if (job.options.load) {
    load(*job.options.load);
  }
  checkpoints_.emplace(job_.options, console_, *progress_);
  metrics_.emplace(job_, trainer_.steps(), console_);
  timeline_.emplace(job_, trainer_.plan(), stages_of(totals_));
}

void TrainRun::load(const std::string& path) {
  const Checkpoint checkpoint = read_checkpoint(path);
  trainer_.load(checkpoint,
                job_.options.seed_from == SeedChoice::Option ? SeedFrom::Trainer : SeedFrom::Same);
  if (trainer_.steps() >= job_.options.steps) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("--steps expects a step after the checkpoint's, found {}; '{}' is at step {}: "
                    "give a larger --steps",
                    job_.options.steps,
                    path,
                    trainer_.steps()));
  }
  if (reference_) {
    start_from(*reference_, checkpoint);
  }
  other_processors_ = other_processors(checkpoint.processors, trainer_.processors());
}

/// Reports where the run continues, and whether with other code than before.
void TrainRun::tell_resumed() {
  const auto text_of = [](const nlohmann::ordered_json& object) {
    return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  };
  const TrainOptions& o = job_.options;
  if (o.resumed_at) {
    progress_->report(fmt::format("goes on from {}, after step {} of {}\n",
                                  std::filesystem::path(*o.load).filename().string(),
                                  trainer_.steps(),
                                  o.steps),
                      text_of({{"event", "resumed"},
                               {"step", trainer_.steps()},
                               {"steps", o.steps},
                               {"file", *o.load}}));
  }
  if (!other_processors_.empty()) {
    progress_->report(
        fmt::format("note: {} is of other processors: {}\n", *o.load, other_processors_),
        text_of({{"event", "other_processors"}, {"file", *o.load}, {"why", other_processors_}}));
  }
}

ExitCode TrainRun::run() {
  // Before this point there is nothing to finish, and a signal just ends the process.
  Interrupt interrupt(saves(job_.options), form_ == ProgressForm::Live);
  try {
    tell_resumed();
    tell_cut();
    train(interrupt);
  } catch (...) {
    progress_->text("");  // ends the live line, so that the message gets its own
    throw;
  }
  const int signal = trainer_.steps() < job_.options.steps ? interrupt.received() : 0;
  if (signal != 0) {
    progress_->interrupted(trainer_.steps(), signal);
  }
  const bool good = done_ == 0 || close(interrupt);
  if (signal != 0) {
    return interrupted_by(signal);
  }
  if (!good) {
    return ExitCode::Failed;
  }
  return output_.failure().empty() ? ExitCode::Good : ExitCode::WrongUsage;
}

/// Reports the cut if it may be anywhere: stages of our own models are where the options say.
void TrainRun::tell_cut() {
  if (job_.planned) {
    progress_->text(chosen_text(*job_.planned));
    progress_->text(plan_text(job_.planned->request, job_.planned->best_first, kPlansTold) + '\n');
  }
  if (job_.options.model_file || job_.choice.cut) {
    const CutReport& cut = job_.program.cut();
    const nlohmann::ordered_json object{{"event", "cut"}, {"stages", cut_json(cut)}};
    progress_->report(to_string(cut), object.dump());
  }
}

void TrainRun::train(const Interrupt& interrupt) {
  const auto& every = job_.options.eval_every;
  while (trainer_.steps() < job_.options.steps && interrupt.received() == 0 && worth_going_on()) {
    report(step());
    if (every && trainer_.steps() % *every == 0) {
      evaluate();
    }
    metrics_->flush();
    checkpoints_->after_step(trainer_);
  }
}

/// Returns whether to continue although the output has no reader (keeps TN-3).
bool TrainRun::worth_going_on() {
  if (output_.failure().empty()) {
    return true;
  }
  const bool keeps = kept_by(job_.options) != nullptr;
  if (keeps) {
    tell_of_output();
  }
  return keeps;
}

/// Reports once, on standard error, that printed text did not arrive.
void TrainRun::tell_of_output() {
  if (output_.failure().empty() || std::exchange(told_of_output_, true)) {
    return;
  }
  const TrainOptions& o = job_.options;
  const bool goes_on = kept_by(o) != nullptr && trainer_.steps() < o.steps;
  console_.err << fmt::format("stagecraft: {}; the run {}\n",
                              output_.failure(),
                              goes_on ? fmt::format("goes on for '{}', to end with exit status 2",
                                                    *kept_by(o))
                                      : fmt::format("ended after step {}", trainer_.steps()))
               << std::flush;
}

/// Does all remaining work, even after failures. Throws the first failure at the end, and the
/// caller reports it. Keeps TN-2.
bool TrainRun::close(Interrupt& interrupt) {
  std::exception_ptr failure;
  const auto attempt = [&](auto&& work) {
    try {
      work();
    } catch (const std::exception& error) {
      if (failure) {
        const auto lack = lack_of_memory(error);
        const auto* ours = dynamic_cast<const Error*>(&error);
        const std::string text = lack   ? lack->what()
                                 : ours ? told_error(*ours, job_.options).what()
                                        : error.what();
        console_.err << fmt::format("stagecraft: {}\n", text) << std::flush;
      } else {
        failure = std::current_exception();
      }
    }
  };
  interrupt.enter(saves(job_.options) ? Interrupt::Phase::Saving : Interrupt::Phase::Ending);
  attempt([&] { save(); });
  attempt([&] { save_weights(); });
  attempt([&] { save_module(); });
  attempt([&] { checkpoints_->close(trainer_); });
  interrupt.enter(Interrupt::Phase::Ending);
  bool good = true;
  attempt([&] { good = verify(); });
  attempt([&] { finish(); });
  attempt([&] { timeline_->write_costs(console_); });
  attempt([&] { timeline_->close(); });
  attempt([&] { metrics_->close(); });
  tell_of_output();
  if (failure) {
    std::rethrow_exception(failure);
  }
  return good;
}

/// Makes one update, of --accumulate batches.
StepResult TrainRun::step() {
  const std::int64_t index = trainer_.steps();
  const std::int64_t batches = job_.options.accumulate;
  for (std::int64_t b = 0;; ++b) {
    const bool updates = b + 1 == batches;
    const std::int64_t number = index * batches + b;
    WorkBatch batch;
    if (!local_ || reference_) {
      batch = job_.work->batch(number, job_.choice);
    }
    StepResult result = pipeline_step(number, batch, updates);
    ReferenceStep one_process;
    if (reference_) {
      one_process = updates ? reference_->step(batch.inputs, batch.labels)
                            : reference_->accumulate(batch.inputs, batch.labels);
    }
    if (!updates) {
      continue;
    }
    metrics_->step(result, tokens().value_or(rows_ * batches));
    if (reference_) {
      verifier_.step(
          index + 1, result.losses, one_process.losses, result.mean_loss, one_process.mean_loss);
    }
    return result;
  }
}

std::optional<std::int64_t> TrainRun::tokens() const {
  const auto of_batch = job_.work->tokens(job_.choice);
  return of_batch ? std::optional(*of_batch * job_.options.accumulate) : std::nullopt;
}

StepFuture TrainRun::enter(std::int64_t number, const WorkBatch& batch, bool updates) {
  if (local_) {
    LocalBatch local = *local_;
    local.number = number;
    return updates ? trainer_.step(local) : trainer_.accumulate(local);
  }
  return updates ? trainer_.step(batch.inputs, batch.labels)
                 : trainer_.accumulate(batch.inputs, batch.labels);
}

/// The runtime counts updates made, a user counts steps from 1: the message uses the user's count.
StepResult TrainRun::pipeline_step(std::int64_t number, const WorkBatch& batch, bool updates) {
  try {
    return enter(number, batch, updates).get();
  } catch (const Error& error) {
    ErrorContext where = error.context();
    where.step.reset();
    Error told(error.code(),
               fmt::format("step {} failed: {}", trainer_.steps() + 1, error.text()));
    told.about(error.option()).advise(error.advice()).with(where);
    if (error.cause() != nullptr) {
      told.because(*error.cause());
    }
    throw told;
  }
}

void TrainRun::report(const StepResult& result) {
  ++done_;
  seconds_ += result.seconds;
  step_seconds_.push_back(result.seconds);
  last_loss_ = result.mean_loss;
  timeline_->add(result);
  for (std::size_t rank = 0; rank < totals_.size(); ++rank) {
    const RankTimes& times = result.ranks[rank];
    RankTotals& total = totals_[rank];
    total.forward += times.forward;
    total.backward += times.backward;
    total.update += times.update;
    total.waiting += times.waiting;
    total.peak_bytes = std::max(total.peak_bytes, times.peak_bytes);
    total.memory_peak = std::max(total.memory_peak, times.memory.peak);
    total.memory_live = times.memory.live;
    total.memory_cached = times.memory.cached;
  }
  const auto left = static_cast<double>(job_.options.steps - trainer_.steps());
  progress_->step({.step = trainer_.steps(),
                   .steps = job_.options.steps,
                   .loss = result.mean_loss,
                   .tokens = tokens(),
                   .seconds = result.seconds,
                   .bubble = result.bubble,
                   .slowest = slowest_of(result.ranks, totals_),
                   .eta_seconds = left * seconds_ / static_cast<double>(done_)});
}

void TrainRun::evaluate() {
  const WorkBatch batch = job_.work->evaluation(job_.choice);
  const std::vector<LabeledBatch> batches{{batch.inputs, batch.labels}};
  const Evaluation found = trainer_.evaluate(batches, job_.work->metrics());
  EvalLine line{.step = trainer_.steps(), .loss = found.loss, .metrics = {}};
  for (const auto& [name, value] : found.metrics) {
    line.metrics.emplace_back(name, value.item<double>());
  }
  progress_->evaluated(line);
  metrics_->evaluated(line);
}

void TrainRun::save() {
  if (job_.options.save) {
    trainer_.save(*job_.options.save);
    progress_->saved(trainer_.steps(), *job_.options.save);
  }
}

void TrainRun::save_weights() {
  if (!job_.options.save_weights) {
    return;
  }
  std::vector<NamedTensor> trained;
  for (auto& [name, tensor] : trainer_.state_dict()) {
    trained.push_back({name, tensor});
  }
  write_weights(*job_.options.save_weights, job_.work->all_names(std::move(trained)));
  progress_->saved_weights(trainer_.steps(), *job_.options.save_weights);
}

void TrainRun::save_module() {
  if (!job_.options.save_module) {
    return;
  }
  const std::string& path = *job_.options.save_module;
  trainer_.save_module(path);
  const nlohmann::ordered_json object{
      {"event", "saved_module"}, {"step", trainer_.steps()}, {"file", path}};
  progress_->report(fmt::format("saved the module of step {} to {}\n", trainer_.steps(), path),
                    object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

bool TrainRun::verify() {
  if (!reference_) {
    return true;
  }
  const auto stage = [&](const std::string& name) {
    return stage_of(job_.program.compiled(), name);
  };
  const NamedTensors buffers = state_of(*reference_, kBuffer);
  const std::vector<std::string> reordered =
      check(job_.program, job_.choice.schedule).reordered_buffers;
  const ModuleState state = trainer_.module_state();
  NamedTensors parameters = first_names(job_.program, state.parameters);
  // Parameters that no stage uses are not trained, and the single process does not hold them.
  std::erase_if(parameters, [&](const auto& named) { return stage(named.first) == kNowhere; });
  verifier_.parameters(parameters, state_of(*reference_, kWeight), stage);
  verifier_.buffers(select(first_names(job_.program, state.buffers), buffers),
                    buffers,
                    stage,
                    {reordered.begin(), reordered.end()});
  VerifyLine line = verifier_.result();
  if (!line.bit_equal) {
    line.likely_cause = cluster_.processor_difference();
  }
  progress_->verified(line);
  return verifier_.result().good;
}

void TrainRun::finish() {
  progress_->report(fmt::format("\n{}\n", rank_table(totals_)), rank_json(totals_).dump());
  timeline_->report(*progress_);
  if (job_.planned) {
    progress_->report(planned_text(*job_.planned, step_seconds_),
                      planned_json(*job_.planned, step_seconds_).dump());
  }
  progress_->done({.steps = trainer_.steps(),
                   .loss = last_loss_,
                   .steps_per_second = static_cast<double>(done_) / seconds_,
                   .tokens = tokens(),
                   .weights_sha256 = weights_sha256(
                       first_names(job_.program, trainer_.module_state().parameters))});
}

}  // namespace stagecraft::tools
