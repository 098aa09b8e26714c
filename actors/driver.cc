#include "stagecraft/actors/driver.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/data_tags.h"
#include "stagecraft/actors/executor/foreign_error.h"
#include "stagecraft/actors/late_step.h"
#include "stagecraft/actors/step_round.h"
#include "stagecraft/actors/timeline_tensor.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process_end.h"

namespace stagecraft {
namespace {

using process_end::AtWork;

using Time = std::chrono::steady_clock::time_point;

class Driver;

struct DriverState {
  static inline const char* name = "driver";
  std::unique_ptr<Driver> driver;

  DriverState();
  ~DriverState();
};

using Self = DriverActor::stateful_pointer<DriverState>;

/// Longest wait for what the agents of a late step say: they never compute.
constexpr std::chrono::seconds kAskLimit{2};

double bubble_of(const std::vector<RankTimes>& ranks, double seconds) {
  double computing = 0.0;
  for (const RankTimes& t : ranks) {
    computing += t.forward + t.backward + t.update;
  }
  const double whole = static_cast<double>(ranks.size()) * seconds;
  return whole > 0.0 ? (whole - computing) / whole : 0.0;
}

/// Empty where there is none, or it did not come in time.
std::vector<InstructionTime> timeline_of(const StepReport& report,
                                         const Future<at::Tensor>& arrival,
                                         std::int64_t clock_offset) {
  if (!arrival.valid()) {
    return {};
  }
  try {
    if (arrival.ready()) {
      return unpack_timeline(arrival.get(), report.timeline_rows, clock_offset);
    }
    log(Level::Warning, "timeline late", {{"rank", report.rank}});
  } catch (const Error& error) {
    log(Level::Warning, "timeline missing", {{"rank", report.rank}, {"why", error.what()}});
  }
  return {};
}

/// Requires: every rank has answered.
StepResult result_of(const StepRound& round,
                     const std::vector<Future<at::Tensor>>& timelines,
                     const std::vector<std::int64_t>& clock_offsets,
                     double seconds) {
  StepResult result;
  result.step = round.step().value + (round.training() ? 1 : 0);
  result.seconds = seconds;
  std::map<Microbatch, double> losses;
  for (const auto& answer : round.answers()) {
    result.ranks.push_back(answer->times);
    result.timelines.push_back(
        timeline_of(*answer, timelines[answer->rank.index()], clock_offsets[answer->rank.index()]));
    result.gradient_norm = answer->gradient_norm;
    for (const auto& [microbatch, loss] : answer->losses) {
      losses[microbatch] = loss;
    }
  }
  for (const auto& [microbatch, loss] : losses) {
    result.losses.push_back(loss);
    result.mean_loss += loss / static_cast<double>(losses.size());
  }
  result.bubble = bubble_of(result.ranks, seconds);
  return result;
}

/// Whatever wakes it may make it send tensors or drop late ones, so it is at work then.
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
    const AtWork at_work;
    waiting_.push_back(m.submission);
    start_next();
  }

  void member_ended(const caf::actor_addr& who) {
    const AtWork at_work;
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

  void timeline_here(const TimelineHere& m) {
    const AtWork at_work;
    if (round_ && round_->submission() == m.submission) {
      advance_round();
    }
  }

  void tick() {
    const AtWork at_work;
    tick_at_.reset();
    if (!round_) {
      return;
    }
    if (std::chrono::steady_clock::now() < deadline_) {
      schedule_tick();
    } else if (round_->complete()) {
      finish();
    } else if (phase_ == Phase::Running) {
      ask_silent_ranks();
    } else if (phase_ == Phase::Asking) {
      blame_silent_ranks();
    } else {
      give_up_silent_ranks();
    }
  }

 private:
  enum class Phase : std::uint8_t { Running, Asking, Aborting };

  [[nodiscard]] int ranks() const { return static_cast<int>(setup_.members.size()); }

  static Error ended_error(Rank rank) {
    Error error(Errc::WorkerLost,
                fmt::format("the worker of {} has ended: make a new trainer and load a checkpoint",
                            peer_name(rank)));
    return error.with({.rank = rank});
  }

  // ---- Idle -> Running ----------------------------------------------------------------------

  void start_next() {
    while (!round_ && !waiting_.empty()) {
      const Submission submission = waiting_.front();
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

  void start(Submission submission, const StepInput& input) {
    const Step step(setup_.ledger->committed());
    round_.emplace(submission, step, input.training, ranks());
    timelines_.assign(setup_.members.size(), {});
    phase_ = Phase::Running;
    begun_ = std::chrono::steady_clock::now();
    set_deadline(begun_ + setup_.options.step_deadline);
    const StepOrder order{.step = step,
                          .submission = submission,
                          .epoch = epoch_,
                          .learning_rate = input.training
                                               ? learning_rate_at(setup_.options.learning_rate,
                                                                  setup_.base_learning_rate,
                                                                  step.value)
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

  void request_step(Rank rank, const StepOrder& order) {
    self_->request(setup_.members[rank.index()].plan_thread, caf::infinite, order)
        .then(
            [this, rank, epoch = order.epoch](StepReport& report) {
              const AtWork at_work;
              if (round_) {
                expect_timeline(rank, epoch, report);
                round_->answered(std::move(report));
                advance_round();
              }
            },
            [this, rank, submission = order.submission](const caf::error&) {
              const AtWork at_work;
              if (round_ && round_->submission() == submission) {
                round_->gave_up(rank, ended_error(rank));
                advance_round();
              }
            });
  }

  /// The worker has sent it before its report, so as a rule it is here.
  void expect_timeline(Rank rank, Epoch epoch, const StepReport& report) {
    if (report.submission != round_->submission() || report.timeline_rows == 0) {
      return;
    }
    Future<at::Tensor>& timeline = timelines_[rank.index()];
    timeline =
        setup_.transport->receive(rank, timeline_tag(setup_.plan_id, epoch, report.submission));
    if (!timeline.ready()) {
      // By address: what waits for a tensor does not keep an actor alive.
      timeline.on_ready([who = self_->address(), submission = report.submission] {
        if (const auto driver = caf::actor_cast<DriverActor>(who)) {
          caf::anon_send(driver, TimelineHere{submission});
        }
      });
    }
  }

  /// Only while Running: behind the deadline tick() goes on without them. Nobody waits for a rank
  /// that has ended.
  [[nodiscard]] bool waits_for_timelines() const {
    if (phase_ != Phase::Running || !round_->succeeded()) {
      return false;
    }
    for (std::size_t r = 0; r < timelines_.size(); ++r) {
      if (timelines_[r].valid() && !timelines_[r].ready() && !ended_[r]) {
        return true;
      }
    }
    return false;
  }

  void send_inputs(Submission submission, const StepInput& input) {
    const Plan& plan = input.training ? *setup_.train : *setup_.evaluate;
    try {
      for (const Feed& feed : plan.feeds) {
        const auto& tensors = feed.label ? input.labels : input.inputs;
        setup_.transport->send(
            feed.to,
            {.plan = setup_.plan_id,
             .epoch = epoch_,
             .submission = submission,
             .edge = feed.edge,
             .microbatch = feed.microbatch},
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
      if (!waits_for_timelines()) {
        finish();
      }
    } else if (phase_ != Phase::Aborting && round_->needs_abort()) {
      abort();
    }
  }

  void abort() {
    phase_ = Phase::Aborting;
    epoch_ = Epoch(epoch_.value + 1);
    set_deadline(std::chrono::steady_clock::now() + abort_limit());
    const Error& why = *round_->primary();
    log(Level::Info, "step aborted", {{"step", round_->step()}, {"why", why.what()}});
    const Abort order{.plan = setup_.plan_id, .epoch = epoch_, .reason = to_chain(why)};
    for (const auto& member : setup_.members) {
      self_->send(member.agent, order);
    }
    setup_.transport->advance(setup_.plan_id, epoch_, why);
  }

  /// The step is late: who is it that holds it up? Their agents know.
  void ask_silent_ranks() {
    phase_ = Phase::Asking;
    set_deadline(std::chrono::steady_clock::now() + kAskLimit);
    late_.clear();
    for (const Rank rank : round_->silent()) {
      late_.push_back({.rank = rank, .status = std::nullopt});
    }
    unasked_ = late_.size();
    for (std::size_t i = 0; i < late_.size(); ++i) {
      const auto said =
          [this, i, submission = round_->submission()](std::optional<StatusReply> reply) {
            status(submission, i, std::move(reply));
          };
      self_->request(setup_.members[late_[i].rank.index()].agent, caf::infinite, Status{})
          .then([said](const StatusReply& reply) { said(reply); },
                [said](const caf::error&) { said(std::nullopt); });
    }
  }

  void status(Submission submission, std::size_t which, std::optional<StatusReply> reply) {
    const AtWork at_work;
    if (!round_ || round_->submission() != submission || phase_ != Phase::Asking) {
      return;
    }
    late_[which].status = std::move(reply);
    if (--unasked_ == 0) {
      blame_silent_ranks();
    }
  }

  /// With what is known: an agent may not have answered.
  void blame_silent_ranks() {
    const std::vector<Rank> silent = round_->silent();
    std::erase_if(late_, [&](const SilentRank& s) {
      return std::ranges::find(silent, s.rank) == silent.end();
    });
    const Plan& plan = round_->training() ? *setup_.train : *setup_.evaluate;
    round_->blame(late_step(std::exchange(late_, {}), plan, setup_.options.step_deadline)
                      .with({.step = round_->step()}));
    advance_round();
  }

  // ---- -> Idle --------------------------------------------------------------------------------

  void give_up_silent_ranks() {
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
    const auto timelines = std::exchange(timelines_, {});
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    if (round.succeeded()) {
      log(Level::Info, "step done", {{"step", round.step()}, {"seconds", seconds}});
      setup_.ledger->complete(round.submission(),
                              result_of(round, timelines, setup_.clock_offsets, seconds),
                              round.training());
    } else {
      fail(round);
    }
    start_next();
  }

  void fail(const StepRound& round) {
    std::optional<Error> lost = round.lost();
    if (lost) {
      log(Level::Warning, "weights lost", {{"step", round.step()}, {"why", lost->what()}});
      setup_.ledger->lose(*lost);
    }
    setup_.ledger->fail(round.submission(), round.primary() ? *round.primary() : *lost);
  }

  // ---- deadlines ------------------------------------------------------------------------------

  [[nodiscard]] std::chrono::milliseconds abort_limit() const {
    return std::max(setup_.options.step_deadline, kLeastAbortLimit);
  }

  void set_deadline(Time when) {
    deadline_ = when;
    schedule_tick();
  }

  /// One message to itself at a time, however many steps there are, unless a deadline is earlier:
  /// it looks at the deadline when it comes.
  void schedule_tick() {
    if (!tick_at_ || deadline_ < *tick_at_) {
      tick_at_ = deadline_;
      const auto wait = std::max(deadline_ - std::chrono::steady_clock::now(), Time::duration(0));
      self_->delayed_send(self_, caf::timespan(wait), caf::tick_atom::value);
    }
  }

  const Self self_;
  const DriverSetup setup_;
  std::deque<Submission> waiting_;
  std::vector<bool> ended_;
  Epoch epoch_{0};

  std::optional<StepRound> round_;             ///< absent when Idle
  std::vector<Future<at::Tensor>> timelines_;  ///< by rank; of the step under way
  Phase phase_ = Phase::Running;
  Time begun_, deadline_;
  std::optional<Time> tick_at_;   ///< of the earliest message to itself that is on its way
  std::vector<SilentRank> late_;  ///< of the step under way, while Asking
  std::size_t unasked_ = 0;       ///< of these, who has not answered
};

DriverState::DriverState() = default;

DriverState::~DriverState() {
  const AtWork at_work;  // timelines that have come are dropped
  driver.reset();
}

DriverActor::behavior_type driver_behavior(Self self, const DriverSetup& setup) {
  self->state.driver = std::make_unique<Driver>(self, setup);
  self->set_down_handler(
      [self](const caf::down_msg& m) { self->state.driver->member_ended(m.source); });
  self->set_exception_handler([ledger = setup.ledger](std::exception_ptr& thrown) -> caf::error {
    const Error why =
        Error(Errc::Internal,
              "the driver of this trainer has failed, a bug of Stagecraft: make a new trainer")
            .because(foreign_error(thrown));
    log(Level::Error, "driver failed", {{"why", why.what()}});  // keeps DR-5
    ledger->break_down(why);
    return caf::exit_reason::unhandled_exception;
  });
  return {[self](const Submit& m) { self->state.driver->submit(m); },
          [self](const TimelineHere& m) { self->state.driver->timeline_here(m); },
          [self](caf::tick_atom) { self->state.driver->tick(); }};
}

}  // namespace

DriverActor spawn_driver(ActorHost& host, DriverSetup setup) {
  return host.system().spawn(driver_behavior, std::move(setup));
}

}  // namespace stagecraft
