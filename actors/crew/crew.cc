#include "stagecraft/actors/crew/crew.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "stagecraft/actors/crew/crew_workers.h"
#include "stagecraft/actors/crew/state_transfer.h"
#include "stagecraft/actors/driver/driver.h"
#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/actors/driver/task_dispatch.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/actors/messages/close_transports.h"
#include "stagecraft/actors/worker/stage_worker.h"
#include "stagecraft/base/clock_reading.h"
#include "stagecraft/base/process/home_process.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {
namespace {

/// Returns each rank's part of the program's weights and buffers.
StateOfRank initial_weights(const Graph& graph, std::vector<StateListing> listings) {
  std::map<std::string, at::Tensor> by_name;
  for (auto& [name, tensor] : initial_state(graph)) {
    by_name[name] = tensor;
  }
  return [by_name = std::move(by_name), listings = std::move(listings)](Rank rank) {
    std::vector<StateTensor> state;
    for (const std::string& name : listings[rank.index()].names) {
      if (!is_of_optimizer(name)) {
        state.push_back({name, tensor_or_share(by_name, name)});
      }
    }
    return state;
  };
}

int ranks_of(const Job& job) {
  return static_cast<int>(job.train->ranks.size());
}

LastRank last_rank_of(const Job& job) {
  return job.has_driver_row ? LastRank::Here : LastRank::LikeOthers;
}

}  // namespace

struct Crew::Impl {
  ActorHost& host;
  const HomeProcess home;
  const std::shared_ptr<StepLedger> ledger;
  const Job job;
  const bool recovers;  ///< Trainer::recover restores the state of any one rank
  const std::shared_ptr<const Clock> clock;
  const std::shared_ptr<Binding> binding;
  const std::shared_ptr<Transport> here;
  const std::shared_ptr<std::atomic<std::int64_t>> epoch =
      std::make_shared<std::atomic<std::int64_t>>(0);  ///< the newest epoch that was begun
  /// Null unless the driver releases the tasks of steps. Every driver of the crew has it, so that
  /// one of them at a time calls the user; the user's last call ends before the crew.
  const std::shared_ptr<TaskDispatch> dispatch;
  CrewWorkers workers;
  const StateTransfer transfer;
  std::vector<std::int64_t> clock_offsets;  ///< by rank: offset of its times to our clock
  std::set<Rank> moved;                     ///< ranks whose new worker has no plan yet
  std::set<Rank> launched;                  ///< of those that moved: their setups wait for them
  std::vector<std::shared_ptr<const JobShape>> shapes;  ///< that all ranks have
  DriverActor driver;

  Impl(Launcher& launcher, std::shared_ptr<StepLedger> l, Job j, std::shared_ptr<const Clock> c)
      : host(launcher.host()),
        ledger(std::move(l)),
        job(std::move(j)),
        recovers(job.options.mirror || every_stage_has_copies(*job.train, job.has_driver_row)),
        clock(std::move(c)),
        binding(launcher.bind(ranks_of(job), last_rank_of(job))),
        here(binding->driver_end()),
        dispatch(job.options.dispatch == Dispatch::Plan
                     ? nullptr
                     : std::make_shared<TaskDispatch>(here, job)),
        workers(host, binding, ranks_of(job), job.options.state_deadline, clock),
        transfer(job.plan_id, workers, here, ledger, epoch),
        clock_offsets(job.train->ranks.size()) {}

  ~Impl() { end(); }

  void take_replacements() {
    for (const Rank rank : workers.all_ranks()) {
      if (binding->was_replaced(rank)) {
        moved.insert(rank);
      }
    }
    if (moved.empty()) {
      return;
    }
    for (const Rank rank : moved) {
      // Not again if the launch of another has failed: its worker would keep a setup for ever.
      if (!launched.contains(rank) || binding->was_replaced(rank)) {
        workers.launch(rank_setup(job, rank));
        launched.insert(rank);
      }
    }
    launched.clear();  // each takes its setup now
    hand_out_plan({moved.begin(), moved.end()}, /*join=*/true);
    for (const auto& shape : shapes) {
      hand_out(*shape, {moved.begin(), moved.end()});
    }
    moved.clear();
    end_driver();  // it refused steps until here: its members have changed
    ++*epoch;
    start_driver();
  }

  /// `join`: a trainer that others are in already.
  void hand_out_plan(const std::vector<Rank>& to, bool join) {
    using Times = std::vector<std::atomic<std::int64_t>>;
    const auto answered = std::make_shared<Times>(to.size());  // written by the callbacks
    const ClockReading begun = read_clock();
    std::vector<Asked<Ready>> asked;
    for (std::size_t i = 0; i < to.size(); ++i) {
      asked.push_back(
          workers.ask_rank<Ready>(to[i],
                                  LoadPlan{.rank = to[i],
                                           .plan = job.plan_id,
                                           .patience_ms = job.options.state_deadline.count(),
                                           .joins = join}));
      asked.back().answer.on_ready([answered, i] { (*answered)[i] = read_clock().nanoseconds; });
    }
    const std::vector<Ready> all_ready = workers.gather(asked);
    for (std::size_t i = 0; i < to.size(); ++i) {
      // The thread that completes an answer may note its time only after this thread reads it.
      const std::int64_t noted = (*answered)[i];
      const std::int64_t when = noted == 0 ? read_clock().nanoseconds : noted;
      clock_offsets[to[i].index()] = clock_offset(all_ready[i].clock, begun, when);
    }
  }

  void hand_out(const JobShape& shape, const std::vector<Rank>& to) {
    const Submission request = ledger->next_request();
    std::vector<Asked<ShapeLoaded>> asked;
    for (const Rank rank : to) {
      binding->hand_over(rank_shape(shape, share_of(job.train, rank)), job.plan_id, request);
      asked.push_back(workers.ask_rank<ShapeLoaded>(
          rank,
          LoadShape{.rank = rank,
                    .request = request,
                    .patience_ms = job.options.state_deadline.count()}));
    }
    workers.gather(asked);
  }

  void start_driver() {
    DriverSetup d;
    d.members = workers.all();
    d.clock_offsets = clock_offsets;
    d.plan_id = job.plan_id;
    d.transport = here;
    d.ledger = ledger;
    d.base_learning_rate = base_learning_rate(job.optimizer);
    d.options = job.options;
    d.dispatch = dispatch;
    d.recovers = recovers;
    d.causes = workers.causes();
    d.first_epoch = Epoch(*epoch);
    d.epoch = epoch;
    d.clock = clock;
    driver = spawn_driver(host, std::move(d));
    workers.advise(recovery_advice(recovers));
  }

  /// Requires: no step is in progress.
  void end_driver() {
    host.end({caf::actor_cast<caf::actor>(driver)}, job.options.end_deadline);
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
    const Deadline deadline = clock->now() + job.options.end_deadline;
    std::vector<caf::actor> everybody;
    if (driver) {  // first: it needs no reports of the ranks' end
      caf::anon_send_exit(driver, caf::exit_reason::user_shutdown);
    }
    close_transports(host, workers.all(), why, job.options.end_deadline, *clock);
    if (driver) {
      everybody.push_back(caf::actor_cast<caf::actor>(driver));
    }
    for (const Worker& worker : workers.all()) {
      if (worker.agent) {  // the constructor has failed otherwise
        everybody.push_back(caf::actor_cast<caf::actor>(worker.agent));
        everybody.push_back(caf::actor_cast<caf::actor>(worker.plan_thread));
      }
    }
    host.end(everybody, deadline - clock->now());
  }
};

Crew::Crew(Launcher& launcher,
           std::shared_ptr<StepLedger> ledger,
           Job job,
           std::shared_ptr<const Clock> clock) {
  job.plan_id = launcher.new_plan_id();
  std::vector<RankSetup> setups;
  for (std::size_t r = 0; r < job.train->ranks.size(); ++r) {
    setups.push_back(rank_setup(job, Rank(r)));
  }
  launcher.require_fit(setups,
                       last_rank_of(job));  // start nothing for a job that could not run there
  impl_ = std::make_unique<Impl>(launcher, std::move(ledger), std::move(job), std::move(clock));
  for (RankSetup& setup : setups) {
    impl_->workers.launch(std::move(setup));
  }
  impl_->hand_out_plan(impl_->workers.all_ranks(), /*join=*/false);
  const auto no_facts = [] { return std::string(); };  // another driver makes these weights again
  impl_->transfer.write(
      initial_weights(impl_->job.program->graph, impl_->transfer.list()), 0, no_facts);
  impl_->start_driver();
}

Crew::~Crew() = default;

PlanId Crew::plan_id() const {
  return impl_->job.plan_id;
}

void Crew::submit(Submission submission) {
  caf::anon_send(impl_->driver, Submit{submission});
}

void Crew::add_shape(std::shared_ptr<const JobShape> shape) {
  impl_->ledger->drain();
  impl_->hand_out(*shape, impl_->workers.all_ranks());
  if (shape->number == 0) {  // an evaluation replaces all shapes with its number
    std::erase_if(impl_->shapes,
                  [&](const auto& known) { return known->program == shape->program; });
  }
  impl_->shapes.push_back(std::move(shape));
}

void Crew::take_replacements() {
  impl_->take_replacements();
}

std::vector<StateListing> Crew::list_state() {
  return impl_->transfer.list();
}

std::vector<std::vector<StateTensor>> Crew::read_state(const std::vector<StatePick>& picks) {
  return impl_->transfer.read(picks);
}

std::string_view Crew::advice() const {
  return recovery_advice(impl_->recovers);
}

std::vector<std::vector<StateTensor>> Crew::read_gradients() {
  return impl_->transfer.read_gradients();
}

void Crew::write_state(const StateOfRank& state_of,
                       std::int64_t updates,
                       const std::function<std::string()>& facts,
                       const std::function<void()>& forgotten) {
  impl_->transfer.write(state_of, updates, facts, forgotten);
}

Deadline Crew::deadline(std::chrono::milliseconds patience) const {
  return impl_->clock->now() + patience;
}

bool Crew::wait(Rank rank, const Future<at::Tensor>& awaited, Deadline deadline) const {
  return impl_->workers.wait(rank, awaited, deadline);
}

void Crew::take_mirrors(const RecoveryPoint& point, const std::string& facts) {
  impl_->transfer.take_mirrors(point, facts);
}

std::vector<std::optional<StatusReply>> Crew::status(std::chrono::milliseconds limit) {
  std::vector<AgentActor> agents;
  for (const Worker& worker : impl_->workers.all()) {
    agents.push_back(worker.agent);
  }
  return ask_status(impl_->host, agents, limit);
}

}  // namespace stagecraft
