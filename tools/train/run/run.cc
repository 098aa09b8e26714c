#include "stagecraft/tools/train/run/run.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/validation.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/lack_of_memory.h"
#include "stagecraft/compiler/shapes/sample_rows.h"
#include "stagecraft/tools/plan/report.h"
#include "stagecraft/tools/program/cut_option.h"
#include "stagecraft/tools/train/options/update_rule.h"
#include "stagecraft/tools/train/record/recorded_progress.h"
#include "stagecraft/tools/train/record/run_events.h"
#include "stagecraft/tools/train/report/error_for_user.h"
#include "stagecraft/tools/train/report/quiet_progress.h"
#include "stagecraft/tools/train/run/job_trainer_options.h"
#include "stagecraft/tools/train/run/local_work.h"
#include "stagecraft/tools/train/run/routes.h"
#include "stagecraft/tools/train/run/run_cluster.h"
#include "stagecraft/tools/train/run/run_files.h"
#include "stagecraft/tools/train/run/run_header.h"
#include "stagecraft/tools/train/run/run_watch.h"
#include "stagecraft/tools/train/verify/named_state.h"
#include "stagecraft/tools/train/verify/weights_hash.h"

namespace stagecraft::tools {
namespace {

constexpr int kPlansTold = 3;

/// How often a paused run looks for a signal and for the end of a save.
constexpr std::chrono::milliseconds kPauseLook{100};

std::unique_ptr<Progress> progress_of(
    const RunOptions& options, ProgressForm form, RunOutput& out, Watch* watch, RunFolder* folder) {
  std::unique_ptr<Progress> progress = make_progress(form, out);
  if (options.quiet) {
    progress = make_quiet_progress(std::move(progress));
  }
  if (folder != nullptr) {
    progress = make_recorded_progress(std::move(progress), *folder);
  }
  return watch == nullptr ? std::move(progress)
                          : make_watched_progress(std::move(progress), *watch);
}

WorkerLogs logs_of(const TrainOptions& options) {
  return options.workers.kind == WorkerKind::Threads ? WorkerLogs()
                                                     : WorkerLogs(spawn_options(options));
}

/// Requires: a model from a file.
std::int64_t epoch_batches(const TrainJob& job) {
  const std::optional<SampleData> samples = job.work->sample_data();
  return samples ? samples->batches(job.choice.shape) : job.work->fixed_data().value().batches;
}

}  // namespace

TrainRun::TrainRun(const TrainJob& job, const Cluster& cluster, RunFolder* folder, Console& console)
    : job_(job),
      console_(console),
      cluster_(cluster),
      folder_(folder),
      logs_(logs_of(job.options)),
      output_(console),
      form_(progress_form(job.options.run.json)),
      watch_(make_run_watch(job)),
      progress_(progress_of(job.options.run, form_, output_, watch_.get(), folder)),
      reader_(job.options, output_, console),
      local_(job.options.workers.read_data ? std::optional(first_local_batch(job)) : std::nullopt),
      plateau_(make_plateau(job.options.optimizer)),
      epoch_batches_(job.options.optimizer.rate_kind == RateKind::Epoch
                         ? std::optional(epoch_batches(job))
                         : std::nullopt),
      rows_(sample_rows(job.work->batch(0, job.choice.shape).inputs)),
      trainer_(make_trainer()),
      // On a GPU a peak has more than the steps of a rank.
      ranks_(job.choice.layout,
             job.options.workers.device == "cpu" ? job.ranks : std::vector<RankMemory>()) {
  if (job.options.run.verify) {
    one_process_.emplace(job);
  }
  is_attached_ = job.options.workers.attach && attach();
  if (job.start.checkpoint && !is_attached_) {
    load(*job.start.checkpoint);
  }
  begun_ = told_ = evaluated_ = settled_ = trainer_->steps();
  processors_ = trainer_->processors();
  if (watch_) {
    watch_->begin_after(told_);
  }
  next_of_one_process_ = told_ * job.options.run.accumulate;
  checkpoints_.emplace(job_.options.keeping, job_.start.resumed_at, *progress_);
  metrics_.emplace(job_, trainer_->steps(), console_);
  timeline_.emplace(job_, *job_.execution.plan, ranks_.stages());
  recovery_.emplace(job_, cluster_, logs_, [this] { return make_trainer(); });
}

Trainer TrainRun::make_trainer() {
  return {cluster_,
          job_.execution,
          make_optimizer(job_.options.optimizer),
          trainer_options(job_, *progress_, console_)};
}

void TrainRun::load(const std::string& path) {
  const CheckpointReader file(path);
  load_checkpoint(*trainer_, file, job_.options);
  if (!has_more_steps() && !job_.start.resumed_at) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("--steps expects a step after the checkpoint's, found {}; '{}' is at step {}: "
                    "give a larger --steps",
                    job_.choice.steps,
                    path,
                    trainer_->steps()));
  }
  if (one_process_) {
    one_process_->load(read_checkpoint(path));
  }
  go_on_from(file.header().loop);
  other_processors_ = other_processors(file.header().processors, trainer_->processors());
}

bool TrainRun::attach() {
  if (!recover_from_copies(*trainer_) || trainer_->steps() <= job_.start.resumed_at.value_or(0)) {
    return false;
  }
  go_on_from(trainer_->loop_state());
  return true;
}

void TrainRun::go_on_from(const std::optional<LoopState>& loop) {
  if (plateau_ && loop) {
    loop_ = *loop;
    scale_rate(loop_.watch.rate_factor);
  }
}

bool TrainRun::has_more_steps() const {
  return trainer_->steps() < job_.choice.steps;
}

/// Reports the link, and the certificate that a browser shows there.
void TrainRun::report_watch() {
  const std::string link = watch_->link();
  const std::string certificate = watch_->fingerprint();
  nlohmann::ordered_json event = {{"event", "watch"}, {"link", link}};
  std::string text = fmt::format("watch      {}\n", link);
  if (!certificate.empty()) {
    event["certificate"] = certificate;
    text += fmt::format("           certificate SHA-256 {}\n", certificate);
  }
  progress_->note(text, event);
}

/// Reports what the run does, where it continues, and whether with other code than before.
void TrainRun::report_start() {
  if (folder_ != nullptr) {
    folder_->append(began_event(job_, trainer_->steps(), cluster_.workers(), logs_));
  }
  progress_->text(header_text(job_, rows_));
  if (watch_) {
    report_watch();
  }
  if (is_attached_) {
    progress_->report(
        fmt::format("continues with the state of its workers, after step {} of {}\n",
                    trainer_->steps(),
                    job_.choice.steps),
        {{"event", "attached"}, {"step", trainer_->steps()}, {"steps", job_.choice.steps}});
  } else if (job_.start.resumed_at) {
    const std::string& file = *job_.start.checkpoint;
    progress_->report(fmt::format("continues from {}, after step {} of {}\n",
                                  std::filesystem::path(file).filename().string(),
                                  trainer_->steps(),
                                  job_.choice.steps),
                      {{"event", "resumed"},
                       {"step", trainer_->steps()},
                       {"steps", job_.choice.steps},
                       {"file", file}});
  }
  if (!other_processors_.empty()) {
    const std::string& file = *job_.start.checkpoint;
    progress_->note(
        fmt::format("note: {} was written with other processors: {}\n", file, other_processors_),
        {{"event", "other_processors"}, {"file", file}, {"why", other_processors_}});
  }
}

ExitCode TrainRun::run() {
  // Before this point there is nothing to finish, and a signal just ends the process.
  Interrupt interrupt(saves(job_.options.keeping), form_ == ProgressForm::Live);
  try {
    report_start();
    report_cut();
    with_healing(interrupt, [] {});
    if (watch_) {
      watch_->take_no_wishes();
    }
    return finish(interrupt);
  } catch (const Error& error) {
    const Error told = recorded(error);
    progress_->text("");  // ends the live line, so that the message gets its own
    end_watch(told_to_user(told));
    throw told;
  } catch (const std::exception& error) {
    progress_->text("");
    end_watch(told_to_user(error));
    throw;
  }
}

Error TrainRun::recorded(const Error& failure) const {
  const std::int64_t step = (trainer_ ? trainer_->steps() : told_) + 1;
  const std::vector<WorkerPlace> workers = cluster_.workers();
  if (folder_ != nullptr) {
    folder_->append(failed_at_event(failure, step, workers, logs_));
  }
  return logs_.with_log(failure, step, workers);
}

/// Reports and does what follows the last step. Returns how the run ends.
ExitCode TrainRun::finish(Interrupt& interrupt) {
  const int signal = has_more_steps() ? interrupt.received() : 0;
  if (signal != 0) {
    progress_->interrupted(trainer_->steps(), signal);
  } else if (is_stopped() && has_more_steps()) {
    progress_->note(
        fmt::format(
            "stopped by a watcher after step {} of {}\n", trainer_->steps(), job_.choice.steps),
        {{"event", "stopped"}, {"step", trainer_->steps()}});
  }
  bool good = true;
  if (told_ == begun_ && has_more_steps()) {
    reader_.report(trainer_->steps(), has_more_steps());
  } else {
    good = close(interrupt);
  }
  end_watch(has_more_steps() ? fmt::format("it was stopped after step {}", trainer_->steps())
                             : fmt::format("all {} steps are done", trainer_->steps()));
  if (signal != 0) {
    return interrupted_by(signal);
  }
  if (!good) {
    return ExitCode::Failed;
  }
  return output_.failure().empty() ? ExitCode::Good : ExitCode::WrongUsage;
}

/// Reports the cut if it may be anywhere: stages of our own models are where the options say.
void TrainRun::report_cut() {
  if (job_.planned) {
    progress_->text(chosen_text(*job_.planned));
    progress_->text(plan_text(job_.planned->request, job_.planned->best_first, kPlansTold) + '\n');
  }
  if (job_.options.model.file || job_.choice.shape.cut) {
    const CutReport& cut = job_.execution.program.cut();
    progress_->report(to_string(cut), {{"event", "cut"}, {"stages", cut_json(cut)}});
  }
}

/// Trains on from the trainer's current step to the end.
void TrainRun::train(const Interrupt& interrupt) {
  for (;;) {
    if (trainer_->steps() > settled_) {
      settle(interrupt);
    }
    if (!has_more_steps() || ends_early(interrupt)) {
      return;
    }
    report(step());
  }
}

/// Returns whether to make no further step. Files of the end are of one step, so one that was lost
/// meanwhile is made again; and --verify compares the one process, which does not go back.
bool TrainRun::ends_early(const Interrupt& interrupt) {
  return trainer_->steps() >= (one_process_ ? told_ : closed_at_) &&
         (interrupt.received() != 0 || is_stopped() || !reader_.worth_going_on(trainer_->steps()));
}

/// Does what follows a step. If the step is repeated, or was followed up to the loss of a worker,
/// nothing is reported twice (keeps TN-4).
void TrainRun::settle(const Interrupt& interrupt) {
  const std::int64_t step = trainer_->steps();
  const auto& every = job_.options.run.eval_every;
  if (every && step % *every == 0 && (plateau_ || step > evaluated_)) {
    evaluate();
  }
  if (plateau_) {
    trainer_->set_loop_state(step, loop_);
  }
  metrics_->flush();
  checkpoints_->after_step(*trainer_);
  settled_ = step;
  obey_watchers(interrupt);
}

/// Trains to the end, and then does this work, which needs the ranks. Heals the run as often as it
/// may.
void TrainRun::with_healing(const Interrupt& interrupt, const std::function<void()>& work) {
  for (;;) {
    try {
      train(interrupt);
      work();
      return;
    } catch (const Error& failure) {
      heal(failure, interrupt);
    }
  }
}

void TrainRun::obey_watchers(const Interrupt& interrupt) {
  if (!watch_) {
    return;
  }
  do {
    checkpoint_wished_ = watch_->wants_checkpoint() || checkpoint_wished_;
    if (checkpoint_wished_) {
      checkpoints_->save_now(*trainer_);
      checkpoint_wished_ = false;  // not before: a worker may be lost until then
    }
    checkpoints_->tell_done();
  } while (interrupt.received() == 0 && watch_->wants_pause(kPauseLook));
}

bool TrainRun::is_stopped() const {
  return watch_ && watch_->wants_end();
}

void TrainRun::end_watch(const std::string& how) {
  if (watch_) {
    watch_->end(how);
  }
}

void TrainRun::heal(const Error& failure, const Interrupt& interrupt) {
  const std::int64_t before = recovery_->restarts();
  const Healed healed = recovery_->heal(failure, doing_, trainer_, *checkpoints_, [&] {
    return interrupt.received() != 0 || is_stopped();
  });
  doing_ = RunWork::Reading;
  const std::int64_t after = trainer_->steps();
  recovery_->report(healed, after, told_, *progress_);
  watch_knows_ranks_ = false;
  note_processors();
  const std::int64_t restarts = recovery_->restarts() - before;
  metrics_->healed(restarts, healed.seconds);
  if (watch_) {
    watch_->healed({.restarts = restarts, .seconds = healed.seconds});
  }
  if (after > told_) {  // all ranks have made the step, and the report of it was lost
    if (one_process_) {
      train_one_process(after * job_.options.run.accumulate);  // at the rate of that step
    }
    metrics_->lost(after);
    told_ = after;
  }
  if (after <= settled_) {
    settled_ = after;
    loop_ = loop_state();
  }
  if (plateau_) {
    scale_rate(loop_.watch.rate_factor);
  }
}

/// Returns what evaluations have shown up to the trainer's step.
LoopState TrainRun::loop_state() const {
  const std::optional<LoopState> state = trainer_->loop_state();
  if (plateau_ && !state && trainer_->steps() > begun_) {
    throw Error(Errc::Internal,
                fmt::format("expected what evaluations had shown after step {}, found nothing",
                            trainer_->steps()));
  }
  return state.value_or(LoopState());
}

/// Reports that the ranks compute with other code than before, if they do.
void TrainRun::note_processors() {
  std::vector<std::string> now = trainer_->processors();
  if (!processors_.empty() && !now.empty() && now != processors_) {
    const std::string why = fmt::format(
        "the ranks computed with {} before the restart, and compute with {} now: the "
        "run may get other bits than an uninterrupted one",
        fmt::join(processors_, " and "),
        fmt::join(now, " and "));
    progress_->note(fmt::format("note: {}\n", why), {{"event", "other_processors"}, {"why", why}});
  }
  processors_ = std::move(now);
}

/// Returns what the terminal says about an error.
std::string TrainRun::told_to_user(const std::exception& error) const {
  const auto lack = lack_of_memory(error);
  const auto* ours = dynamic_cast<const Error*>(&error);
  return lack ? lack->what() : ours ? error_for_user(*ours, job_.options).what() : error.what();
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
        console_.err << fmt::format("stagecraft: {}\n", told_to_user(error)) << std::flush;
      } else {
        failure = std::current_exception();
      }
    }
  };
  closed_at_ = trainer_->steps();
  interrupt.enter(saves(job_.options.keeping) ? Interrupt::Phase::Saving
                                              : Interrupt::Phase::Ending);
  const auto attempt_on_ranks = [&](const std::function<void()>& work) {
    if (trainer_) {  // else an attempt has failed with the reason
      attempt([&] { with_healing(interrupt, work); });
    }
  };
  attempt_on_ranks([&] { checkpoints_->close(*trainer_); });  // first: the others are newer then
  attempt_on_ranks([&] { save_checkpoint(job_, *trainer_, *progress_); });
  attempt_on_ranks([&] { save_weights(job_, *trainer_, *progress_); });
  attempt_on_ranks([&] { save_module(job_, *trainer_, *progress_); });
  interrupt.enter(Interrupt::Phase::Ending);
  bool good = true;
  attempt_on_ranks([&] { good = verify(); });
  attempt_on_ranks([&] { report_end(); });
  if (told_ > begun_) {
    attempt([&] { timeline_->write_costs(console_); });
  }
  attempt([&] { timeline_->close(); });
  attempt([&] { metrics_->close(); });
  reader_.report(told_, told_ < job_.choice.steps);
  if (failure) {
    std::rethrow_exception(failure);
  }
  return good;
}

/// Makes one update, of --accumulate batches.
StepResult TrainRun::step() {
  const std::int64_t index = trainer_->steps();
  const std::int64_t batches = job_.options.run.accumulate;
  if (epoch_batches_) {
    scale_rate(epoch_factor(job_.options.optimizer, index * batches, *epoch_batches_));
  }
  for (std::int64_t b = 0;; ++b) {
    const bool updates = b + 1 == batches;
    const std::int64_t number = index * batches + b;
    WorkBatch batch;
    if (!local_ || one_process_) {
      batch = job_.work->batch(number, job_.choice.shape);
    }
    StepResult result = pipeline_step(number, batch, updates);
    bool is_new = false;
    if (one_process_) {
      train_one_process(number);
      is_new = next_of_one_process_ == number;
      if (is_new) {
        one_process_->train(batch, updates);
        ++next_of_one_process_;
      }
    }
    if (!updates) {
      continue;
    }
    metrics_->step(result, tokens().value_or(rows_ * batches));
    if (is_new) {
      one_process_->compare(index + 1, result);
    }
    return result;
  }
}

/// Trains the one process on the batches before this one that it has not seen: those of a step
/// whose results were lost with a worker.
void TrainRun::train_one_process(std::int64_t until) {
  const std::int64_t batches = job_.options.run.accumulate;
  for (; next_of_one_process_ < until; ++next_of_one_process_) {
    one_process_->train(job_.work->batch(next_of_one_process_, job_.choice.shape),
                        (next_of_one_process_ + 1) % batches == 0);
  }
}

std::optional<std::int64_t> TrainRun::tokens() const {
  const auto of_batch = job_.work->tokens(job_.choice.shape);
  return of_batch ? std::optional(*of_batch * job_.options.run.accumulate) : std::nullopt;
}

StepFuture TrainRun::enter(std::int64_t number, const WorkBatch& batch, bool updates) {
  if (local_) {
    LocalBatch local = *local_;
    local.number = number;
    return updates ? trainer_->step(local) : trainer_->accumulate(local);
  }
  return updates ? trainer_->step(batch.inputs, batch.labels)
                 : trainer_->accumulate(batch.inputs, batch.labels);
}

/// The runtime counts updates made, a user counts steps from 1: the message uses the user's count.
StepResult TrainRun::pipeline_step(std::int64_t number, const WorkBatch& batch, bool updates) {
  doing_ = RunWork::Step;
  try {
    const StepFuture step = enter(number, batch, updates);
    StepResult result = watch_ ? watch_->wait(step, *trainer_) : step.get();
    doing_ = RunWork::Reading;
    return result;
  } catch (const Error& error) {
    ErrorContext where = error.context();
    where.step.reset();
    const std::string text = where.microbatch
                                 ? job_.work->located(error.text(),
                                                      number,
                                                      static_cast<int>(where.microbatch->index()),
                                                      job_.choice.shape)
                                 : error.text();
    Error told(error.code(), fmt::format("step {} failed: {}", trainer_->steps() + 1, text));
    told.about(error.option()).advise(error.advice()).with(where);
    if (error.cause() != nullptr) {
      told.because(*error.cause());
    }
    throw told;
  }
}

void TrainRun::report(const StepResult& result) {
  last_loss_ = {trainer_->steps(), result.mean_loss};
  if (watch_ && !watch_knows_ranks_) {
    watch_->set_routes(routes_of(trainer_->status()));
    watch_->set_places(places_of(job_, cluster_));
    watch_knows_ranks_ = true;
  }
  if (trainer_->steps() <= told_) {
    metrics_->repeated();
    if (watch_) {
      watch_->healed({.repeated_steps = 1});
    }
    return;
  }
  told_ = trainer_->steps();
  ++done_;
  seconds_ += result.seconds;
  step_seconds_.push_back(result.seconds);
  std::shared_ptr<const MeasuredStep> measured = timeline_->add(result);
  if (watch_) {
    watch_->step(
        result, tokens().value_or(rows_ * job_.options.run.accumulate), std::move(measured));
  }
  ranks_.add(result);
  if (trainer_->steps() % job_.options.run.log_every != 0 && has_more_steps()) {
    return;
  }
  const auto left = static_cast<double>(job_.choice.steps - trainer_->steps());
  progress_->step({.step = trainer_->steps(),
                   .steps = job_.choice.steps,
                   .loss = result.mean_loss,
                   .tokens = tokens(),
                   .seconds = result.seconds,
                   .bubble = result.bubble,
                   .learning_rate = result.learning_rate,
                   .gradient_norm = result.gradient_norm,
                   .counts = result.counts,
                   .loss_scale = loss_scaling_of(job_.options.pipeline.precision)
                                     ? std::optional(result.loss_scale)
                                     : std::nullopt,
                   .skipped = result.skipped,
                   .slowest = ranks_.slowest(result),
                   .eta_seconds = left * seconds_ / static_cast<double>(done_)});
}

void TrainRun::evaluate() {
  const auto batches = evaluation_source(*job_.work, job_.choice.shape);
  doing_ = RunWork::Evaluation;
  const Evaluation found = trainer_->evaluate(*batches, job_.work->metrics());
  doing_ = RunWork::Reading;
  EvalLine line{.step = trainer_->steps(), .loss = found.loss, .metrics = {}};
  for (const auto& [name, value] : found.metrics) {
    line.metrics.emplace_back(name, value.item<double>());
  }
  if (line.step > evaluated_) {
    evaluated_ = line.step;
    progress_->evaluated(line);
    metrics_->evaluated(line);
  }
  if (plateau_ && loop_.evaluated != line.step) {
    loop_.watch = after(loop_.watch, found.loss, trainer_->steps(), {.plateau = plateau_});
    loop_.evaluated = trainer_->steps();
    scale_rate(loop_.watch.rate_factor);
  }
}

void TrainRun::scale_rate(double factor) {
  trainer_->scale_learning_rate(factor);
  if (one_process_) {
    one_process_->scale_learning_rate(factor);
  }
}

bool TrainRun::verify() {
  if (!one_process_) {
    return true;
  }
  train_one_process(trainer_->steps() * job_.options.run.accumulate);
  VerifyLine line = one_process_->compare_state(*trainer_);
  if (!line.bit_equal) {
    line.likely_cause = cluster_.processor_difference();
  }
  progress_->verified(line);
  return line.good;
}

/// Requires: a step was reported.
void TrainRun::report_measurements(bool all) {
  progress_->report(
      fmt::format("\n{}", all ? rank_table(ranks_.totals()) + "\n" : rank_line(ranks_.totals())),
      rank_json(ranks_.totals()));
  timeline_->report(*progress_, all);
  if (job_.planned) {
    progress_->report(planned_text(*job_.planned, step_seconds_),
                      planned_json(*job_.planned, step_seconds_));
  }
}

/// People get ten lines, or all tables with --report; programs get the same in both cases.
void TrainRun::report_end() {
  const std::string hash =  // first: a worker may be lost until it is read
      weights_sha256(first_names(job_.execution.program, trainer_->module_state().parameters));
  const bool all = job_.options.run.report;
  if (done_ > 0) {
    report_measurements(all);
  }
  progress_->text(fmt::format("weights sha256 {}\n", hash));
  progress_->done({.steps = trainer_->steps(),
                   .loss = last_loss_ && last_loss_->first == trainer_->steps()
                               ? std::optional(last_loss_->second)
                               : std::nullopt,
                   .steps_per_second = done_ > 0
                                           ? std::optional(static_cast<double>(done_) / seconds_)
                                           : std::nullopt,
                   .tokens = tokens(),
                   .weights_sha256 = hash});
  if (!all) {
    progress_->text("more: --report, or --trace FILE and `stagecraft trace show FILE`\n");
  }
  if (job_.options.run.verbose) {
    console_.err << routes_text(trainer_->status());
  }
}

}  // namespace stagecraft::tools
