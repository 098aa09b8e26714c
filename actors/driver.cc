#include "stagecraft/actors/driver.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/late_step.h"
#include "stagecraft/actors/step_round.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

using Time = std::chrono::steady_clock::time_point;

class Driver;

struct DriverState {
  static inline const char* name = "driver";
  std::unique_ptr<Driver> driver;
};

using Self = DriverActor::stateful_pointer<DriverState>;

std::vector<RefId> ids_of(const std::vector<MicrobatchLoss>& losses) {
  std::vector<RefId> ids;
  for (const MicrobatchLoss& loss : losses) {
    ids.push_back(loss.id);
  }
  return ids;
}

class Driver {
 public:
  Driver(Self self, DriverSetup setup) : self_(self), setup_(std::move(setup)) {
    for (const auto& [plan_thread, agent] : setup_.members) {
      self_->monitor(plan_thread);
      self_->monitor(agent);
    }
    ended_.resize(setup_.members.size(), false);
  }

  void submit(const Submit& m) {
    waiting_.push_back(m.submission);
    start_next();
  }

  void member_ended(const caf::actor_addr& who) {
    for (std::size_t r = 0; r < setup_.members.size(); ++r) {
      const auto& [plan_thread, agent] = setup_.members[r];
      if (who != plan_thread.address() && who != agent.address()) {
        continue;
      }
      ended_[r] = true;
      const Error why = ended_error(Rank(r));
      setup_.ledger->lose(why);
      if (round_) {
        round_->gave_up(Rank(r), why);
        advance_round();
      }
    }
  }

  void tick() {
    ticking_ = false;
    if (!round_) {
      return;
    }
    if (std::chrono::steady_clock::now() < deadline_) {
      schedule_tick();
    } else if (phase_ == Phase::Running) {
      ask_silent_ranks();
    } else {
      give_up_silent_ranks();
    }
  }

 private:
  enum class Phase : std::uint8_t { Running, Asking, Aborting };

  [[nodiscard]] int ranks() const { return static_cast<int>(setup_.members.size()); }

  static Error ended_error(Rank rank) {
    Error error(
        Errc::WorkerLost,
        fmt::format("the worker of rank {} has ended: make a new trainer and load a checkpoint",
                    rank.value));
    return error.with({.rank = rank});
  }

  // ---- Idle -> Running ----------------------------------------------------------------------

  void start_next() {
    while (!round_ && !waiting_.empty()) {
      const Step submission = waiting_.front();
      waiting_.pop_front();
      std::optional<StepInput> input = setup_.ledger->start(submission);
      if (!input) {
        continue;
      }
      if (const auto lost = setup_.ledger->lost()) {
        setup_.ledger->fail(submission, refusal(*lost));
        continue;
      }
      start(submission, *input);
    }
  }

  static Error refusal(const Error& lost) {
    Error error(
        Errc::WorkerLost,
        "the weights are undefined since an earlier step failed while changing them, so no step is "
        "run: load a checkpoint");
    return error.because(lost);
  }

  void start(Step submission, const StepInput& input) {
    const Step step(setup_.ledger->committed());
    round_.emplace(submission, step, input.training, ranks());
    phase_ = Phase::Running;
    begun_ = std::chrono::steady_clock::now();
    set_deadline(begun_ + setup_.step_deadline);
    const RunStep order{
        .step = step,
        .submission = submission,
        .epoch = epoch_,
        .learning_rate =
            input.training
                ? learning_rate_at(setup_.learning_rate, setup_.base_learning_rate, step.value)
                : 0.0,
        .training = input.training};
    for (int r = 0; r < ranks(); ++r) {
      request_step(Rank(r), order);
    }
    send_inputs(submission, input);
    // An ended rank answers no request: what was found out before this step counts for it too.
    for (int r = 0; r < ranks(); ++r) {
      if (ended_[static_cast<std::size_t>(r)]) {
        round_->gave_up(Rank(r), ended_error(Rank(r)));
      }
    }
    advance_round();
  }

  void request_step(Rank rank, const RunStep& order) {
    self_->request(setup_.members[rank.index()].plan_thread, caf::infinite, order)
        .then(
            [this](StepDone& done) {
              if (round_) {
                round_->answered(std::move(done));
                advance_round();
              }
            },
            [this, rank, submission = order.submission](const caf::error&) {
              if (round_ && round_->submission() == submission) {
                round_->gave_up(rank, ended_error(rank));
                advance_round();
              }
            });
  }

  void send_inputs(Step submission, const StepInput& input) {
    const Plan& plan = input.training ? *setup_.train : *setup_.evaluate;
    try {
      for (const Feed& feed : plan.feeds) {
        const auto& tensors = feed.label ? input.labels : input.inputs;
        setup_.transport->send(
            feed.to,
            {.epoch = epoch_, .step = submission, .edge = feed.edge, .microbatch = feed.microbatch},
            tensors.at(feed.microbatch.index()).at(static_cast<std::size_t>(feed.position)));
      }
    } catch (const Error& error) {
      round_->blame(error);
    }
  }

  // ---- Running -> Asking or Aborting --------------------------------------------------------

  /// After every answer: on to the next phase when it is time.
  void advance_round() {
    if (!round_) {
      return;
    }
    if (round_->complete()) {
      finish();
    } else if (phase_ != Phase::Aborting && round_->needs_abort()) {
      abort();
    }
  }

  void abort() {
    phase_ = Phase::Aborting;
    epoch_ = Epoch(epoch_.value + 1);
    set_deadline(std::chrono::steady_clock::now() + setup_.step_deadline);
    const Error& why = *round_->primary();
    log(Level::Info, "step aborted", {{"step", round_->step()}, {"why", why.what()}});
    const Abort order{.epoch = epoch_, .reason = to_chain(why)};
    for (const auto& member : setup_.members) {
      self_->send(member.agent, order);
    }
    setup_.transport->advance(epoch_, why);
  }

  /// The step is late: who is it that holds it up? Their agents know.
  void ask_silent_ranks() {
    phase_ = Phase::Asking;
    set_deadline(std::chrono::steady_clock::now() + setup_.step_deadline);
    statuses_.clear();
    const std::vector<Rank> silent = round_->silent();
    asked_ = silent.size();
    for (const Rank rank : silent) {
      self_
          ->request(
              setup_.members[rank.index()].agent, caf::timespan(std::chrono::seconds(1)), Status{})
          .then([this, submission = round_->submission()](
                    const StatusReply& reply) { status(submission, reply); },
                [this, rank, submission = round_->submission()](const caf::error&) {
                  status(submission, {.rank = rank});
                });
    }
  }

  void status(Step submission, const StatusReply& reply) {
    if (!round_ || round_->submission() != submission || phase_ != Phase::Asking) {
      return;
    }
    statuses_.push_back(reply);
    if (statuses_.size() == asked_) {
      const Plan& plan = round_->training() ? *setup_.train : *setup_.evaluate;
      round_->blame(late_step(std::move(statuses_), plan, setup_.step_deadline)
                        .with({.step = round_->step()}));
      advance_round();
    }
  }

  // ---- -> Idle --------------------------------------------------------------------------------

  void give_up_silent_ranks() {
    for (const Rank rank : round_->silent()) {
      Error error(
          Errc::WorkerLost,
          fmt::format(
              "rank {} was told to abort and has not answered within {} ms: what it does to its "
              "weights is unknown",
              rank.value,
              setup_.step_deadline.count()));
      round_->gave_up(rank, error.with({.rank = rank}));
    }
    advance_round();
  }

  void finish() {
    // Taken out first: completing a future may bring the next Submit.
    const StepRound round = *std::exchange(round_, std::nullopt);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    if (round.succeeded()) {
      log(Level::Info, "step done", {{"step", round.step()}, {"seconds", seconds}});
      setup_.ledger->complete(round.submission(), outcome_of(round, seconds), round.training());
    } else {
      fail(round);
    }
    start_next();
  }

  void fail(const StepRound& round) {
    for (const auto& answer : round.answers()) {
      if (answer && !answer->losses.empty()) {
        setup_.release(answer->rank, ids_of(answer->losses));
      }
    }
    std::optional<Error> lost = round.lost();
    if (lost) {
      log(Level::Warning, "weights lost", {{"step", round.step()}, {"why", lost->what()}});
      setup_.ledger->lose(*lost);
    }
    setup_.ledger->fail(round.submission(), round.primary() ? *round.primary() : *lost);
  }

  StepOutcome outcome_of(const StepRound& round, double seconds) const {
    StepOutcome outcome;
    outcome.step = Step(round.step().value + (round.training() ? 1 : 0));
    outcome.seconds = seconds;
    for (const auto& answer : round.answers()) {
      outcome.ranks.push_back(answer->times);
      outcome.timelines.push_back(answer->timeline);
      outcome.gradient_norm = answer->gradient_norm;
      if (!answer->losses.empty()) {
        outcome.losses.push_back(
            {.rank = answer->rank,
             .losses = answer->losses,
             .keeps = RemoteValue({answer->rank, answer->losses.front().id},
                                  [release = setup_.release, ids = ids_of(answer->losses)](
                                      const Ref& ref) { release(ref.owner, ids); })});
      }
    }
    return outcome;
  }

  // ---- deadlines ------------------------------------------------------------------------------

  void set_deadline(Time when) {
    deadline_ = when;
    schedule_tick();
  }

  /// One message to itself at a time, however many steps there are: it looks at the deadline when
  /// it comes.
  void schedule_tick() {
    if (!ticking_) {
      ticking_ = true;
      const auto wait = std::max(deadline_ - std::chrono::steady_clock::now(), Time::duration(0));
      self_->delayed_send(self_, caf::timespan(wait), caf::tick_atom::value);
    }
  }

  const Self self_;
  const DriverSetup setup_;
  std::deque<Step> waiting_;
  std::vector<bool> ended_;
  Epoch epoch_{0};

  std::optional<StepRound> round_;  ///< absent when Idle
  Phase phase_ = Phase::Running;
  Time begun_, deadline_;
  bool ticking_ = false;
  std::vector<StatusReply> statuses_;
  std::size_t asked_ = 0;
};

DriverActor::behavior_type driver_behavior(Self self, const DriverSetup& setup) {
  self->state.driver = std::make_unique<Driver>(self, setup);
  self->set_down_handler(
      [self](const caf::down_msg& m) { self->state.driver->member_ended(m.source); });
  // Whatever goes wrong in here, nobody may wait for ever.
  self->set_exception_handler([ledger = setup.ledger](std::exception_ptr&) -> caf::error {
    ledger->close();
    return caf::exit_reason::unhandled_exception;
  });
  return {[self](const Submit& m) { self->state.driver->submit(m); },
          [self](caf::tick_atom) { self->state.driver->tick(); }};
}

}  // namespace

DriverActor spawn_driver(ActorHost& host, DriverSetup setup) {
  return host.system().spawn(driver_behavior, std::move(setup));
}

}  // namespace stagecraft
