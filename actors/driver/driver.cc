#include "stagecraft/actors/driver/driver.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/driver/agent_answers.h"
#include "stagecraft/actors/driver/late_step.h"
#include "stagecraft/actors/driver/lost_workers.h"
#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/actors/driver/step_round.h"
#include "stagecraft/actors/driver/step_tensors.h"
#include "stagecraft/actors/driver/step_timelines.h"
#include "stagecraft/actors/driver/task_dispatch.h"
#include "stagecraft/actors/driver/unfinished_update.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {
namespace {

using process_end::AtWork;

using Time = Clock::Time;

class Driver;

struct DriverState {
  static inline const char* name = "driver";
  std::unique_ptr<Driver> driver;

  DriverState();
  ~DriverState();
};

using Self = DriverActor::stateful_pointer<DriverState>;

/// Returns the cause; empty if its owner has gone without one.
std::string known_cause(const Future<std::string>& cause) {
  try {
    return cause.get();
  } catch (const Error&) {
    return {};
  }
}

/// Handling a message may send or drop tensors, so each handler marks this thread as busy (AtWork).
class Driver {
 public:
  Driver(Self self, DriverSetup setup)
      : self_(self),
        setup_(std::move(setup)),
        lost_(setup_.recovers, setup_.options.dispatch != Dispatch::Decided),
        answers_(ranks()),
        epoch_(setup_.first_epoch) {
    for (std::size_t r = 0; r < setup_.members.size(); ++r) {
      self_->monitor(setup_.members[r].plan_thread);
      self_->monitor(setup_.members[r].agent);
      expect_cause(Rank(r));
    }
    if (epoch_ != Epoch(0)) {
      begin_epoch(Error(Errc::WorkerAborted, "a worker was replaced: earlier steps have ended"));
    }
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Keeps DR-7.
  ~Driver() {
    setup_.ledger->fail_under_way(Error(
        Errc::ClusterClosed, "the driver that was to run this step has ended: run the step again"));
  }

  void submit(const Submit& m) {
    const AtWork at_work;
    waiting_.push_back(m.submission);
    start_next();
  }

  /// `reason`: has a text if a failure of its own ended the member.
  void member_ended(const caf::actor_addr& who, const caf::error& reason) {
    const AtWork at_work;
    const bool has_failed =
        reason == caf::sec::runtime_error && reason.context().match_elements<std::string>();
    for (std::size_t r = 0; r < setup_.members.size(); ++r) {
      const auto& [plan_thread, agent] = setup_.members[r];
      if (who == plan_thread.address() || who == agent.address()) {
        if (has_failed) {
          lost_.learn(Rank(r), "its worker has failed: " + reason.context().get_as<std::string>(0));
        }
        lose(Rank(r));
      }
    }
  }

  void answered(StepReport& report) {
    const AtWork at_work;
    if (round_) {
      expect_timeline(report);
      round_->answered(std::move(report));
      advance_round();
    }
  }

  void timeline_here(const TimelineHere& m) {
    const AtWork at_work;
    if (round_ && round_->submission() == m.submission) {
      advance_round();
    }
  }

  void learned(CauseOfEnd& m) {
    const AtWork at_work;
    lost_.learn(m.rank, std::move(m.cause));
    settle_losses();
  }

  void tick() {
    const AtWork at_work;
    tick_at_.reset();
    if (round_ && now() >= deadline_) {
      deadline_passed();
    } else if (round_ && phase_ == Phase::Running && now() >= look_at_) {
      look_at_ = now() + look_interval();
      ask_unfinished_ranks();
    }
    settle_losses();
    schedule_tick();
  }

 private:
  enum class Phase : std::uint8_t { Running, Asking, Aborting };

  [[nodiscard]] int ranks() const { return static_cast<int>(setup_.members.size()); }

  [[nodiscard]] Time now() const { return setup_.clock->now(); }

  [[nodiscard]] bool has_lost() const { return !lost_.ranks().empty(); }

  [[nodiscard]] bool awaits_causes() const { return lost_.awaited_until(now()).has_value(); }

  void deadline_passed() {
    if (round_->complete()) {
      finish();
    } else if (phase_ == Phase::Running) {
      begin_asking(kAskLimit);
    } else if (phase_ == Phase::Asking) {
      advance_round();
    } else {
      give_up_unfinished_ranks();
    }
  }

  // ---- Idle -> Running ----------------------------------------------------------------------

  void start_next() {
    while (!waiting_.empty() && (!round_ || has_lost()) && !awaits_causes()) {
      const Submission submission = waiting_.front();
      waiting_.pop_front();
      std::optional<StepInput> input = setup_.ledger->start(submission);
      if (!input) {
        continue;
      }
      if (const auto why = refusal()) {
        setup_.ledger->fail(submission, *why);
        continue;
      }
      if (const auto why = input->program == kTraining ? update_.begin(*input) : std::nullopt) {
        setup_.ledger->fail(submission, *why);
        continue;
      }
      start_with_its_rule(submission, *input);
    }
  }

  /// A rate that fails fails the step, as do groups of which none trains: nothing was ordered yet.
  void start_with_its_rule(Submission submission, const StepInput& input) {
    try {
      rate_ = rate_of(input);
      facts_ = input.program == kTraining
                   ? setup_.ledger->facts(setup_.ledger->committed(), input.seed)
                   : std::string();
      group_numbers_ = input.program == kTraining && input.updates
                           ? setup_.ledger->begin_update(input.frozen)
                           : std::vector<std::int64_t>();
    } catch (...) {
      const Error why =
          foreign_error(std::current_exception()).with({.step = Step(setup_.ledger->committed())});
      update_.fail(why);
      setup_.ledger->fail(submission, why);
      return;
    }
    start(submission, input);
  }

  [[nodiscard]] double rate_of(const StepInput& input) const {
    if (input.program != kTraining || !input.updates || input.learning_rate) {
      return input.rate_factor * input.learning_rate.value_or(0.0);
    }
    const process_end::Elsewhere in_the_users_code;
    return input.rate_factor * learning_rate_at(setup_.options.learning_rate,
                                                setup_.base_learning_rate,
                                                setup_.ledger->committed());
  }

  /// Returns why no step runs, or nothing. Keeps DR-4.
  [[nodiscard]] std::optional<Error> refusal() const {
    const std::optional<Error> why = setup_.ledger->lost();
    if (has_lost()) {
      Error error = lost_.refusal();
      const bool says_it = why && why->message() == lost_.error_of(lost_.ranks().front()).message();
      return why && !says_it ? error.because(*why) : error;
    }
    if (why) {
      Error error(Errc::WorkerLost,
                  "the weights are undefined since an earlier step failed while changing them, so "
                  "no step is run");
      error.advise(std::string(recovery_advice(setup_.recovers)));
      return error.with({.rank = why->context().rank}).because(*why);
    }
    return std::nullopt;
  }

  void start(Submission submission, const StepInput& input) {
    const Step step(setup_.ledger->committed());
    const bool training = input.program == kTraining;
    round_.emplace(submission,
                   step,
                   training,
                   ranks(),
                   setup_.recovers,
                   input.parts,
                   input.updates,
                   std::ranges::any_of(input.plan->tables.groups, &PlanGroup::has_shards));
    plan_ = input.plan;
    timelines_ = StepTimelines(ranks());
    answers_.begin_step(submission);
    failed_ = false;
    phase_ = Phase::Running;
    begun_ = now();
    look_at_ = begun_ + look_interval();
    set_deadline(begun_ + setup_.options.step_deadline);
    const StepOrder order{.step = step,
                          .seed = input.seed,
                          .submission = submission,
                          .epoch = epoch_,
                          .learning_rate = rate_,
                          .clip = input.clip.value_or(setup_.options.clip.value_or(kUnclipped)),
                          .group_numbers = group_numbers_,
                          .loss_scale = scale_in_use(),
                          .program = input.program,
                          .parts = input.parts,
                          .accumulated = update_.accumulated(),
                          .updates = input.updates,
                          .facts = facts_,
                          .local = input.local};
    ordered_epoch_ = epoch_;
    const Tag tag{.plan = setup_.plan_id, .epoch = epoch_, .submission = submission};
    expect_results(*setup_.transport, tag, input);
    // Not a request: an answer as a message costs half, and the end of a worker is reported anyway.
    for (const auto& member : setup_.members) {
      self_->send(member.plan_thread, order);
    }
    try {
      send_inputs(*setup_.transport, tag, input);
    } catch (const Error& error) {
      round_->blame(error);
    }
    if (training && setup_.dispatch) {
      setup_.dispatch->begin(tag);
    }
    advance_round();
  }

  /// Receives the timeline, which the worker sends before its report, so that it is usually here.
  void expect_timeline(const StepReport& report) {
    if (report.submission != round_->submission() || report.timeline_rows == 0 ||
        report.rank.index() >= setup_.members.size()) {
      return;
    }
    const Future<at::Tensor> timeline = setup_.transport->receive(
        report.rank, timeline_tag(setup_.plan_id, ordered_epoch_, report.submission));
    timelines_.expect(report.rank, report.timeline_rows, timeline);
    if (!timeline.ready()) {
      // Keep the address only: a wait for a tensor must not keep an actor alive.
      timeline.on_ready([who = self_->address(), submission = report.submission] {
        if (const auto driver = caf::actor_cast<DriverActor>(who)) {
          caf::anon_send(driver, TimelineHere{submission});
        }
      });
    }
  }

  /// Only while Running: after the deadline tick() continues without timelines. Does not wait for a
  /// rank that has ended.
  [[nodiscard]] bool waits_for_timelines() const {
    return phase_ == Phase::Running && round_->succeeded() &&
           !std::ranges::all_of(timelines_.missing(), [this](Rank r) { return lost_.has(r); });
  }

  // ---- Running -> Asking or Aborting --------------------------------------------------------

  /// Called after every answer: enters the next phase when it is time.
  void advance_round() {
    if (!round_) {
      return;
    }
    if (round_->complete()) {
      if (!waits_for_timelines()) {
        finish();
      }
    } else if (phase_ == Phase::Asking && knows_enough()) {
      blame();
    } else if (phase_ == Phase::Running && round_->lacks_a_cause()) {
      begin_asking(kLossAskLimit);  // the peer may be gone: ask
    } else if (phase_ != Phase::Aborting && round_->needs_abort() && !has_lost() &&
               !round_->lacks_a_cause()) {
      abort();
    }
  }

  void abort() {
    phase_ = Phase::Aborting;
    set_deadline(now() + abort_limit());
    const Error& why = *round_->primary();
    log(Level::Info, "step aborted", {{"step", round_->step()}, {"why", why.what()}});
    begin_next_epoch(why);
    if (round_->cannot_succeed()) {
      fail_early();
    }
  }

  void begin_next_epoch(const Error& why) {
    epoch_ = Epoch(epoch_.value + 1);
    begin_epoch(why);
  }

  /// Begins an epoch on every rank and here.
  void begin_epoch(const Error& why) {
    if (setup_.epoch) {
      setup_.epoch->store(epoch_.value);
    }
    const Abort order{.plan = setup_.plan_id, .epoch = epoch_, .reason = to_chain(why)};
    for (const auto& member : setup_.members) {
      self_->send(member.agent, order);
    }
    setup_.transport->advance(setup_.plan_id, epoch_, why);
  }

  // ---- which rank holds up the step, or which waits for the lost one: ask their agents ---------

  void begin_asking(std::chrono::milliseconds limit) {
    phase_ = Phase::Asking;
    set_deadline(now() + limit);
    ask_unfinished_ranks();
    advance_round();
  }

  void ask_unfinished_ranks() {
    const Submission submission = round_->submission();
    for (const Rank rank : round_->silent()) {
      if (lost_.has(rank) || !answers_.ask(rank, now())) {
        continue;
      }
      self_->request(setup_.members[rank.index()].agent, caf::infinite, Status{})
          .then([this, rank, submission](
                    StatusReply& reply) { heard(rank, submission, std::move(reply)); },
                [this, rank, submission](const caf::error&) {
                  heard(rank, submission, std::nullopt);
                });
    }
  }

  void heard(Rank rank, Submission submission, std::optional<StatusReply> status) {
    const AtWork at_work;
    answers_.said(rank, submission, std::move(status));
    if (phase_ == Phase::Asking) {
      advance_round();
    }
  }

  [[nodiscard]] bool waits_for_agents() const {
    return std::ranges::any_of(round_->silent(),
                               [this](Rank r) { return !lost_.has(r) && answers_.owes(r); });
  }

  /// Returns whether agents and causes are known, or too late.
  [[nodiscard]] bool knows_enough() const {
    return (!waits_for_agents() || now() >= deadline_) && !awaits_causes();
  }

  /// Blames the round with what is known: an agent may not have answered.
  void blame() {
    const Plan& plan = *plan_;
    std::vector<UnfinishedRank> unfinished = answers_.of(round_->silent(), now());
    if (has_lost()) {
      blame_lost_ranks(std::move(unfinished), plan);
    } else if (!round_->needs_abort()) {
      const bool in_order = setup_.options.dispatch != Dispatch::Decided;
      round_->blame(late_step(std::move(unfinished), plan, setup_.options.step_deadline, in_order)
                        .with({.step = round_->step()}));
    }
    if (round_->complete()) {
      finish();
    } else {
      abort();
    }
  }

  void blame_lost_ranks(std::vector<UnfinishedRank> unfinished, const Plan& plan) {
    const Error why =
        lost_.error_in_step(std::move(unfinished), plan).with({.step = round_->step()});
    round_->blame(why);  // a rank that has answered is not given up, but must abort
    for (const Rank rank : lost_.ranks()) {
      round_->gave_up(rank, rank == lost_.ranks().front() ? why : lost_.error_of(rank));
    }
    named_ = lost_.ranks().size();
  }

  // ---- lost workers -----------------------------------------------------------------------------

  /// Keeps DR-8.
  void expect_cause(Rank rank) {
    if (rank.index() >= setup_.causes.size()) {
      lost_.learn(rank, "");
      return;
    }
    // Keep the address only: a wait for a cause must not keep an actor alive.
    const Future<std::string>& cause = setup_.causes[rank.index()];
    cause.on_ready([who = self_->address(), rank, cause] {
      if (const auto driver = caf::actor_cast<DriverActor>(who)) {
        caf::anon_send(driver, CauseOfEnd{.rank = rank, .cause = known_cause(cause)});
      }
    });
  }

  /// May be called twice: once for the end of each of its two actors.
  void lose(Rank rank) {
    if (lost_.has(rank)) {
      return;
    }
    lost_.add(rank, now() + kCauseLimit);
    if (round_ && phase_ == Phase::Running && !round_->complete()) {
      begin_asking(kLossAskLimit);
    } else if (round_ && phase_ == Phase::Asking) {
      set_deadline(std::min(deadline_, now() + kLossAskLimit));
    }
    advance_round();  // a step that lacks only this rank's timeline is done
    settle_losses();
    schedule_tick();
  }

  /// Called when a worker is lost, and when its cause is known or awaited no longer.
  void settle_losses() {
    if (!has_lost() || awaits_causes()) {
      return;
    }
    if (!round_) {
      report_losses();
    } else if (phase_ == Phase::Aborting) {
      for (const Rank rank : lost_.ranks()) {
        round_->gave_up(rank, lost_.error_of(rank));
      }
      named_ = lost_.ranks().size();
      if (round_->cannot_succeed()) {
        fail_early();
      }
    }
    advance_round();
    start_next();
  }

  /// Reports each loss once to the ledger, and to the log unless a failed step has named it.
  void report_losses() {
    for (; reported_ < lost_.ranks().size(); ++reported_) {
      const Error why = lost_.error_of(lost_.ranks()[reported_]);
      if (reported_ >= named_) {
        log(Level::Warning, "worker lost", {{"why", in_words(why, {}).what()}});
      }
      setup_.ledger->lose(why);
    }
  }

  /// Keeps DR-6. Requires: the step cannot succeed, and its abort was sent.
  void fail_early() {
    if (std::exchange(failed_, true)) {
      return;
    }
    fail(*round_);
    start_next();
  }

  // ---- -> Idle --------------------------------------------------------------------------------

  void give_up_unfinished_ranks() {
    for (const Rank rank : round_->silent()) {
      Error error(
          Errc::WorkerLost,
          fmt::format("{} was told to abort and has not answered within {} ms: what it does to its "
                      "weights is unknown",
                      peer_name(rank),
                      abort_limit().count()));
      round_->gave_up(rank, error.with({.rank = rank}));
    }
    advance_round();
  }

  void finish() {
    // Taken out first: completing a future may bring the next Submit.
    const StepRound round = *std::exchange(round_, std::nullopt);
    const StepTimelines timelines = std::exchange(timelines_, StepTimelines(0));
    const double seconds = std::chrono::duration<double>(now() - begun_).count();
    if (round.succeeded()) {
      log(Level::Info, "step done", {{"step", round.step()}, {"seconds", seconds}});
      StepResult result = round.result(timelines.arrived(setup_.clock_offsets), seconds);
      result.learning_rate = rate_;
      result.loss_scale = round.training() ? scale_in_use().factor : 1.0;
      setup_.ledger->complete(round.submission(),
                              round.training() ? update_.complete(std::move(result)) : result,
                              round.updates());
    } else if (!failed_) {
      if (round.needs_abort() && phase_ != Phase::Aborting) {
        begin_next_epoch(*round.primary());  // links of devices end with their epoch
      }
      fail(round);
    }
    if (const auto skipped = round.skipped_by_some(); skipped && !round.succeeded()) {
      setup_.ledger->note_partial_update(*skipped);
    }
    settle_losses();  // a rank that had answered does not change the step
    start_next();
  }

  [[nodiscard]] LossScale scale_in_use() const {
    LossScale scale = setup_.ledger->loss_scale();
    scale.factor = setup_.options.loss_scaling ? scale.factor : 1.0;
    return scale;
  }

  void fail(const StepRound& round) {
    const std::optional<Error> lost = round.lost();
    if (lost) {
      log(Level::Warning,
          "weights lost",
          {{"step", round.step()}, {"why", in_words(*lost, {}).what()}});
      setup_.ledger->lose(*lost);
    }
    const Error why = round.failure();
    if (round.training()) {
      update_.fail(why);
    }
    setup_.ledger->fail(round.submission(), why);
  }

  // ---- deadlines ------------------------------------------------------------------------------

  [[nodiscard]] std::chrono::milliseconds abort_limit() const {
    return std::max(setup_.options.step_deadline, kLeastAbortLimit);
  }

  [[nodiscard]] std::chrono::milliseconds look_interval() const {
    return std::max(kLookInterval, std::chrono::milliseconds(ranks()));
  }

  void set_deadline(Time when) {
    deadline_ = when;
    schedule_tick();
  }

  /// Returns when to look at the times next; nothing while no deadline is set.
  [[nodiscard]] std::optional<Time> next_look() const {
    const std::optional<Time> causes = lost_.awaited_until(now());
    if (!round_) {
      return causes;
    }
    const Time next = phase_ == Phase::Running ? std::min(deadline_, look_at_) : deadline_;
    if (!causes) {
      return next;
    }
    return next > now() ? std::min(next, *causes) : *causes;
  }

  /// Schedules one message to itself at a time, for any number of steps; another only for an
  /// earlier time. The message's handler looks at the times.
  void schedule_tick() {
    const std::optional<Time> next = next_look();
    if (next && (!tick_at_ || *next < *tick_at_)) {
      tick_at_ = next;
      const auto wait = std::max(*next - now(), Time::duration(0));
      self_->delayed_send(self_, caf::timespan(wait), caf::tick_atom::value);
    }
  }

  const Self self_;
  const DriverSetup setup_;
  std::deque<Submission> waiting_;
  LostWorkers lost_;
  // Count the lost workers, in their order, that the ledger knows, and that a failed step has
  // named.
  std::size_t reported_ = 0, named_ = 0;
  AgentAnswers answers_;
  Epoch epoch_;
  Epoch ordered_epoch_;  ///< of the step in progress

  std::optional<StepRound> round_;    ///< absent when Idle
  std::shared_ptr<const Plan> plan_;  ///< of the step in progress
  StepTimelines timelines_{0};        ///< of the step in progress
  UnfinishedUpdate update_;           ///< the update of this batch, if it trains
  Phase phase_ = Phase::Running;
  double rate_ = 0.0;                        ///< of the step in progress
  std::vector<std::int64_t> group_numbers_;  ///< likewise
  std::string facts_;                        ///< likewise
  bool failed_ = false;                      ///< its future has failed
  Time begun_, deadline_, look_at_;
  std::optional<Time> tick_at_;  ///< time of the earliest message to itself in progress
};

DriverState::DriverState() = default;

DriverState::~DriverState() {
  const AtWork at_work;  // drops timelines that have come
  driver.reset();
}

DriverActor::behavior_type driver_behavior(Self self, const DriverSetup& setup) {
  self->state.driver = std::make_unique<Driver>(self, setup);
  self->set_down_handler(
      [self](const caf::down_msg& m) { self->state.driver->member_ended(m.source, m.reason); });
  self->set_exception_handler([ledger = setup.ledger](std::exception_ptr& thrown) -> caf::error {
    const Error cause = foreign_error(thrown);
    const Error why =
        (cause.code() == Errc::DeviceOutOfMemory
             ? Error(cause.code(), "the driver of this trainer has failed: make a new trainer")
             : Error(Errc::Internal,
                     "the driver of this trainer has failed, a bug of Stagecraft: make a new "
                     "trainer"))
            .because(cause);
    log(Level::Error, "driver failed", {{"why", why.what()}});  // keeps DR-5
    ledger->break_down(why);
    return caf::exit_reason::unhandled_exception;
  });
  return {[self](const Submit& m) { self->state.driver->submit(m); },
          [self](StepReport& m) { self->state.driver->answered(m); },
          [self](const TimelineHere& m) { self->state.driver->timeline_here(m); },
          [self](CauseOfEnd& m) { self->state.driver->learned(m); },
          [self](caf::tick_atom) { self->state.driver->tick(); }};
}

}  // namespace

DriverActor spawn_driver(ActorHost& host, DriverSetup setup) {
  return host.system().spawn(driver_behavior, std::move(setup));
}

}  // namespace stagecraft
