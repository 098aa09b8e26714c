#include "stagecraft/actors/crew/crew.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "stagecraft/actors/crew/worker_losses.h"
#include "stagecraft/actors/driver/driver.h"
#include "stagecraft/actors/driver/lost_workers.h"
#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/actors/worker/stage_worker.h"
#include "stagecraft/base/clock_reading.h"
#include "stagecraft/base/home_process.h"
#include "stagecraft/base/process_end.h"

namespace stagecraft {
namespace {

/// Longest wait for an agent: agents never compute.
constexpr std::chrono::seconds kAgentLimit{30};

/// Two crews of different processes may share a worker, so the id is random, not counted.
PlanId drawn_plan_id() {
  std::random_device source;
  const auto half = [&source] { return static_cast<std::uint64_t>(source()); };
  return PlanId(half() << 32U | half());
}

std::string plan_thread_name(Rank rank) {
  return "the worker of " + peer_name(rank);
}

/// A question to one rank.
template <class Reply>
struct Asked {
  Rank rank;
  Future<Reply> answer;
};

}  // namespace

struct Crew::Impl {
  ActorHost& host;
  const HomeProcess home;
  const std::shared_ptr<StepLedger> ledger;
  const Job job;
  const std::shared_ptr<Binding> binding;
  const std::shared_ptr<Transport> here;
  const std::shared_ptr<std::atomic<std::int64_t>> epoch =
      std::make_shared<std::atomic<std::int64_t>>(0);  ///< the newest epoch that was begun
  std::vector<Worker> workers;                         ///< by rank
  WorkerLosses losses;
  std::vector<std::int64_t> clock_offsets;  ///< by rank: offset of its times to our clock
  std::set<Rank> moved;                     ///< ranks whose new worker has no plan yet
  std::vector<std::shared_ptr<const JobVariant>> variants;  ///< that all ranks have
  DriverActor driver;

  Impl(Launcher& launcher, std::shared_ptr<StepLedger> l, Job j)
      : host(launcher.host()),
        ledger(std::move(l)),
        job(std::move(j)),
        binding(launcher.bind(ranks())),
        here(binding->driver_end()),
        losses(ranks()),
        clock_offsets(job.train->ranks.size()) {}

  ~Impl() { end(); }

  [[nodiscard]] int ranks() const { return static_cast<int>(job.train->ranks.size()); }

  [[nodiscard]] std::vector<Rank> all_ranks() const {
    std::vector<Rank> all;
    for (int r = 0; r < ranks(); ++r) {
      all.emplace_back(r);
    }
    return all;
  }

  void launch(RankSetup setup) {
    const Rank rank = setup.rank;
    workers.push_back(binding->launch(std::move(setup)));
    losses.watch(rank, workers.back());
  }

  void mend() {
    for (const Rank rank : all_ranks()) {
      if (binding->was_replaced(rank)) {
        moved.insert(rank);
      }
    }
    if (moved.empty()) {
      return;
    }
    for (const Rank rank : moved) {
      Worker& worker = workers[rank.index()];
      caf::anon_send_exit(worker.agent, caf::exit_reason::user_shutdown);
      caf::anon_send_exit(worker.plan_thread, caf::exit_reason::user_shutdown);
      worker = binding->launch(rank_setup(job, rank));
      losses.watch(rank, worker);
    }
    hand_out_plan({moved.begin(), moved.end()});
    for (const auto& variant : variants) {
      hand_out(*variant, {moved.begin(), moved.end()});
    }
    moved.clear();
    end_driver();  // it refused steps until here: its members have changed
    ++*epoch;
    start_driver();
  }

  /// Returns why the worker of a rank has ended, and how to continue.
  [[nodiscard]] Error loss_of(Rank rank) const {
    return lost_worker(rank,
                       binding->cause_of_end(rank),
                       driver ? recovery_advice(job.options.mirror) : "make the trainer again");
  }

  /// Returns false at the deadline. Errors: WorkerLost if the rank ends first (keeps CR-3).
  template <class T>
  [[nodiscard]] bool wait(Rank rank, const Future<T>& awaited, Deadline deadline) const {
    const WorkerLosses::Waited waited = losses.wait(awaited, {rank}, deadline);
    if (waited == WorkerLosses::Waited::Lost) {
      throw loss_of(rank);
    }
    return waited == WorkerLosses::Waited::Complete;
  }

  /// Returns the rank's answer. Errors: WorkerLost; ClusterTimeout; the rank's own.
  template <class Reply>
  [[nodiscard]] Reply reply_of(const Asked<Reply>& asked) const {
    Reply reply;
    try {
      reply = asked.answer.get();
    } catch (const Error& error) {
      if (error.code() == Errc::ClusterMember) {
        throw loss_of(asked.rank);
      }
      throw;
    }
    if (!reply.error.empty()) {
      throw to_error(reply.error);
    }
    return reply;
  }

  /// Returns the answers, in the order of the questions. Throws the first failure after all have
  /// answered.
  template <class Reply>
  std::vector<Reply> gather(const std::vector<Asked<Reply>>& asked) const {
    const process_end::Elsewhere waiting;
    std::vector<Reply> replies;
    std::optional<Error> failure;
    for (const Asked<Reply>& one : asked) {
      try {
        replies.push_back(reply_of(one));
      } catch (Error& error) {
        error.with({.rank = one.rank});
        failure = failure ? failure : error;
      }
    }
    if (failure) {
      throw Error(*failure);
    }
    return replies;
  }

  template <class Reply, class Message>
  [[nodiscard]] Asked<Reply> ask_worker(Rank rank, Message message) const {
    return {rank,
            ask<Reply>(host,
                       workers[rank.index()].plan_thread,
                       plan_thread_name(rank),
                       job.options.state_deadline,
                       std::move(message))};
  }

  void hand_out_plan(const std::vector<Rank>& to) {
    using Times = std::vector<std::atomic<std::int64_t>>;
    const auto answered = std::make_shared<Times>(to.size());  // written by the callbacks
    const ClockReading begun = read_clock();
    std::vector<Asked<Ready>> asked;
    for (std::size_t i = 0; i < to.size(); ++i) {
      asked.push_back(
          ask_worker<Ready>(to[i],
                            LoadPlan{.rank = to[i],
                                     .plan = job.plan_id,
                                     .patience_ms = job.options.state_deadline.count()}));
      asked.back().answer.on_ready([answered, i] { (*answered)[i] = read_clock().nanoseconds; });
    }
    const std::vector<Ready> all_ready = gather(asked);
    for (std::size_t i = 0; i < to.size(); ++i) {
      // The thread that completes an answer may note its time only after this thread reads it.
      const std::int64_t noted = (*answered)[i];
      const std::int64_t when = noted == 0 ? read_clock().nanoseconds : noted;
      clock_offsets[to[i].index()] = clock_offset(all_ready[i].clock, begun, when);
    }
  }

  void hand_out(const JobVariant& variant, const std::vector<Rank>& to) {
    const Submission request = ledger->next_request();
    std::vector<Asked<VariantLoaded>> asked;
    for (const Rank rank : to) {
      binding->hand_over(
          rank_variant(variant, rank, job.train->ranks[rank.index()].stages), job.plan_id, request);
      asked.push_back(ask_worker<VariantLoaded>(
          rank,
          LoadVariant{.rank = rank,
                      .request = request,
                      .patience_ms = job.options.state_deadline.count()}));
    }
    gather(asked);
  }

  void start_driver() {
    DriverSetup d;
    d.members = workers;
    d.clock_offsets = clock_offsets;
    d.plan_id = job.plan_id;
    d.transport = here;
    d.ledger = ledger;
    d.base_learning_rate = base_learning_rate(job.optimizer);
    d.options = job.options;
    d.cause_of_end = [them = binding](Rank rank) { return them->cause_of_end(rank); };
    d.first_epoch = Epoch(*epoch);
    d.epoch = epoch;
    driver = spawn_driver(host, std::move(d));
  }

  /// Requires: no step is under way.
  void end_driver() {
    const Deadline deadline = std::chrono::steady_clock::now() + job.options.end_deadline;
    host.end({caf::actor_cast<caf::actor>(driver)}, deadline);
    driver = DriverActor();
  }

  void end() {
    if (!home.is_here()) {
      return;  // keeps CR-2: these are copies of objects that the parent still uses
    }
    const Error why(Errc::ClusterClosed, "the trainer was shut down");
    ledger->close();
    here->close(why);
    if (process_end::begun()) {
      return;  // all threads are parked (PE-1)
    }
    const Deadline deadline = std::chrono::steady_clock::now() + job.options.end_deadline;
    std::vector<caf::actor> everybody;
    if (driver) {  // first: it needs no reports of the ranks' end
      caf::anon_send_exit(driver, caf::exit_reason::user_shutdown);
    }
    close_transports(why, deadline);
    if (driver) {
      everybody.push_back(caf::actor_cast<caf::actor>(driver));
    }
    for (const Worker& worker : workers) {
      everybody.push_back(caf::actor_cast<caf::actor>(worker.agent));
      everybody.push_back(caf::actor_cast<caf::actor>(worker.plan_thread));
    }
    host.end(everybody, deadline);
  }

  /// Waits for the agents' answers: an actor that is told to quit before may handle that first.
  void close_transports(const Error& why, Deadline deadline) const {
    std::vector<Future<WorkerEnded>> told;
    for (std::size_t r = 0; r < workers.size(); ++r) {
      told.push_back(ask<WorkerEnded>(host,
                                      workers[r].agent,
                                      agent_name(Rank(r)),
                                      job.options.end_deadline,
                                      EndWorker{.reason = to_chain(why)}));
    }
    for (const Future<WorkerEnded>& answer : told) {
      (void)answer.wait_until(deadline);
    }
  }

  [[nodiscard]] std::vector<StateListing> ask_state(const SendState& what) const {
    std::vector<Asked<StateListing>> asked;
    for (int r = 0; r < ranks(); ++r) {
      asked.push_back(ask_worker<StateListing>(Rank(r), what));
    }
    return gather(asked);
  }

  /// Returns the tensors that each rank was asked to send, in the order of its listing.
  [[nodiscard]] std::vector<std::vector<StateTensor>> read(const SendState& what) const {
    const std::vector<StateListing> listings = ask_state(what);
    const Deadline deadline = std::chrono::steady_clock::now() + job.options.state_deadline;
    // Post all receives before the first wait: if one fails, no later tensor stays in the
    // transport.
    std::vector<std::vector<Future<at::Tensor>>> arrivals(listings.size());
    for (std::size_t r = 0; r < listings.size(); ++r) {
      for (std::size_t i = 0; i < listings[r].names.size(); ++i) {
        arrivals[r].push_back(here->receive(Rank(r), state_tag(job.plan_id, what.request, i)));
      }
    }
    std::vector<std::vector<StateTensor>> state(listings.size());
    for (std::size_t r = 0; r < listings.size(); ++r) {
      for (std::size_t i = 0; i < listings[r].names.size(); ++i) {
        if (!wait(Rank(r), arrivals[r][i], deadline)) {
          throw Error(Errc::ClusterTimeout,
                      peer_name(Rank(r)) + " has announced a tensor that has not arrived");
        }
        state[r].push_back({listings[r].names[i], arrivals[r][i].get()});
      }
    }
    return state;
  }

  /// Returns each rank's part of the program's weights and buffers, in the order of its listing.
  [[nodiscard]] std::vector<std::vector<StateTensor>> initial_weights() const {
    std::map<std::string, at::Tensor> by_name;
    for (auto& [name, tensor] : initial_state(job.program->graph)) {
      by_name[name] = tensor;
    }
    std::vector<std::vector<StateTensor>> state;
    for (const RankPlan& rank : job.train->ranks) {
      std::vector<StateTensor>& mine = state.emplace_back();
      const auto add = [&](const std::string& name) { mine.push_back({name, by_name.at(name)}); };
      for (const StageId id : rank.stages) {
        const StageProgram& stage = job.program->partition.stages[id.index()];
        for (const StageParameter& parameter : stage.parameters) {
          add(state_name(kWeight, parameter.name));
        }
        for (const StageBuffer& buffer : stage.buffers) {
          add(state_name(kBuffer, buffer.name));
        }
      }
    }
    return state;
  }

  void write_state(const std::vector<std::vector<StateTensor>>& state, std::int64_t updates) const {
    const Submission request = ledger->next_request();
    std::vector<Asked<StateTaken>> asked;
    for (std::size_t r = 0; r < state.size(); ++r) {
      TakeState order{.request = request, .updates = updates};
      for (std::size_t i = 0; i < state[r].size(); ++i) {
        here->send(Rank(r), state_tag(job.plan_id, request, i), state[r][i].tensor);
        order.names.push_back(state[r][i].name);
      }
      asked.push_back(ask_worker<StateTaken>(Rank(r), std::move(order)));
    }
    gather(asked);
  }

  /// Returns the rank that keeps this rank's copies.
  [[nodiscard]] Rank keeper_of(Rank rank) const { return Rank((rank.value + 1) % ranks()); }

  void take_mirrors(const RecoveryPoint& point) {
    const Submission request = ledger->next_request();
    const Epoch current(*epoch);
    std::vector<Asked<StateListing>> sent;
    std::vector<Asked<StateTaken>> taken;
    std::vector<Rank> sources;
    for (int r = 0; r < ranks(); ++r) {
      sources.push_back(point.lost[Rank(r).index()] ? keeper_of(Rank(r)) : Rank(r));
      if (sources.back() != Rank(r)) {
        sent.push_back(ask_worker<StateListing>(
            sources.back(),
            SendState{.request = request, .kept = point.updates, .to = Rank(r), .epoch = current}));
      }
    }
    gather(sent);  // first: no rank waits for a copy that does not exist
    for (int r = 0; r < ranks(); ++r) {
      taken.push_back(ask_worker<StateTaken>(Rank(r),
                                             TakeState{.request = request,
                                                       .names = {},
                                                       .updates = point.updates,
                                                       .from = sources[Rank(r).index()],
                                                       .epoch = current}));
    }
    for (int r = 0; r < ranks(); ++r) {
      const Rank source = sources[Rank(r).index()];
      if (losses.wait(taken[Rank(r).index()].answer, {source}, Deadline::max()) ==
          WorkerLosses::Waited::Lost) {
        end_exchange(loss_of(source), taken);
      }
    }
    gather(taken);
  }

  /// Ends the ranks' wait for a copy that will not come (keeps CR-3), and throws `why`.
  [[noreturn]] void end_exchange(const Error& why, const std::vector<Asked<StateTaken>>& taken) {
    const Abort order{.plan = job.plan_id, .epoch = Epoch(++*epoch), .reason = to_chain(why)};
    for (const Worker& worker : workers) {
      caf::anon_send(worker.agent, order);
    }
    try {
      gather(taken);
    } catch (const Error&) {  // all failed for the same reason
    }
    throw Error(why);
  }
};

Crew::Crew(Launcher& launcher, std::shared_ptr<StepLedger> ledger, Job job) {
  job.plan_id = drawn_plan_id();
  std::vector<RankSetup> setups;
  for (std::size_t r = 0; r < job.train->ranks.size(); ++r) {
    setups.push_back(rank_setup(job, Rank(r)));
  }
  launcher.require_fit(setups);  // start nothing for a job that could not run there
  impl_ = std::make_unique<Impl>(launcher, std::move(ledger), std::move(job));
  for (RankSetup& setup : setups) {
    impl_->launch(std::move(setup));
  }
  impl_->hand_out_plan(impl_->all_ranks());
  impl_->write_state(impl_->initial_weights(), 0);
  impl_->start_driver();
}

Crew::~Crew() = default;

void Crew::submit(Submission submission) {
  caf::anon_send(impl_->driver, Submit{submission});
}

void Crew::add_variant(std::shared_ptr<const JobVariant> variant) {
  impl_->ledger->drain();
  impl_->hand_out(*variant, impl_->all_ranks());
  if (variant->number == 0) {  // an evaluation replaces all variants with its number
    std::erase_if(impl_->variants,
                  [&](const auto& known) { return known->program == variant->program; });
  }
  impl_->variants.push_back(std::move(variant));
}

void Crew::mend() {
  impl_->mend();
}

std::vector<StateListing> Crew::list_state() {
  return impl_->ask_state({.request = impl_->ledger->next_request(), .tensors = false});
}

std::vector<std::vector<StateTensor>> Crew::read_state() {
  return impl_->read({.request = impl_->ledger->next_request()});
}

std::vector<std::vector<StateTensor>> Crew::read_gradients() {
  return impl_->read({.request = impl_->ledger->next_request(), .gradients = true});
}

void Crew::write_state(const std::vector<std::vector<StateTensor>>& state, std::int64_t updates) {
  impl_->write_state(state, updates);
}

bool Crew::wait(Rank rank, const Future<at::Tensor>& awaited, Deadline deadline) const {
  return impl_->wait(rank, awaited, deadline);
}

void Crew::take_mirrors(const RecoveryPoint& point) {
  impl_->take_mirrors(point);
}

std::vector<std::optional<StatusReply>> Crew::status() {
  std::vector<AgentActor> agents;
  for (const Worker& worker : impl_->workers) {
    agents.push_back(worker.agent);
  }
  return ask_status(impl_->host, agents, kAgentLimit);
}

}  // namespace stagecraft
