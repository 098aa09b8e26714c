#include "stagecraft/actors/crew.h"

#include <optional>
#include <utility>

#include "stagecraft/actors/caf_types.h"
#include "stagecraft/actors/data_tags.h"
#include "stagecraft/actors/driver.h"
#include "stagecraft/actors/stage_worker.h"
#include "stagecraft/futures/transport/inproc.h"

namespace stagecraft {
namespace {

/// Building buckets and interpreters of a whole model takes its time, whatever a step may take.
constexpr std::chrono::minutes kLoadLimit{5};
/// Longest wait for an agent, which never computes.
constexpr std::chrono::seconds kAgentLimit{30};

std::string plan_thread_name(std::size_t rank) {
  return "the worker of rank " + std::to_string(rank);
}
std::string agent_name(std::size_t rank) {
  return "the agent of rank " + std::to_string(rank);
}

/// Where releases go. Handles hold it weakly (CR-2); whoever holds it keeps the actor system alive.
struct Agents {
  std::shared_ptr<ActorHost> host;
  std::vector<AgentActor> actors;
};

/// The answers of all ranks; the first failure among them is thrown once all have answered.
template <class Reply>
std::vector<Reply> gather(const std::vector<Future<Reply>>& answers) {
  std::vector<Reply> replies;
  std::optional<Error> failure;
  for (std::size_t r = 0; r < answers.size(); ++r) {
    try {
      replies.push_back(answers[r].get());
      if constexpr (requires { replies.back().error; }) {
        if (!replies.back().error.empty()) {
          throw to_error(replies.back().error);
        }
      }
    } catch (Error& error) {
      error.with({.rank = Rank(r)});
      failure = failure ? failure : error;
    }
  }
  if (failure) {
    throw Error(*failure);
  }
  return replies;
}

}  // namespace

struct Crew::Impl {
  const std::shared_ptr<ActorHost> host;
  const std::shared_ptr<StepLedger> ledger;
  const CrewSetup setup;
  const InprocNetwork network;
  const std::shared_ptr<Transport> here;
  const std::shared_ptr<Agents> agents;
  std::vector<PlanActor> plan_threads;
  std::vector<std::shared_ptr<WorkerDesk>> desks;
  DriverActor driver;

  Impl(std::shared_ptr<ActorHost> h, std::shared_ptr<StepLedger> l, CrewSetup s)
      : host(std::move(h)),
        ledger(std::move(l)),
        setup(std::move(s)),
        network(setup.ranks),
        here(network.endpoint(kDriver)),
        agents(std::make_shared<Agents>()) {
    agents->host = host;
  }

  ~Impl() { end(); }

  void spawn_workers() {
    for (int r = 0; r < setup.ranks; ++r) {
      const Rank rank(r);
      auto desk = std::make_shared<WorkerDesk>();
      desk->rank = rank;
      desk->transport = network.endpoint(rank);
      ExecutorSetup worker = setup.worker;
      worker.rank = rank;
      if (setup.before_instruction) {
        worker.before_instruction = [hook = setup.before_instruction, rank](const Instruction& i) {
          hook(rank, i);
        };
      }
      desks.push_back(desk);
      plan_threads.push_back(spawn_plan_thread(*host, desk, std::move(worker)));
      agents->actors.push_back(spawn_agent(*host, desk));
    }
  }

  void hand_out_plan() {
    std::vector<Future<Ready>> answers;
    for (std::size_t r = 0; r < plan_threads.size(); ++r) {
      answers.push_back(ask<Ready>(
          *host, plan_threads[r], plan_thread_name(r), kLoadLimit, LoadPlan{.rank = Rank(r)}));
    }
    gather(answers);
  }

  void start_driver() {
    DriverSetup d;
    for (std::size_t r = 0; r < plan_threads.size(); ++r) {
      d.members.push_back({plan_threads[r], agents->actors[r]});
    }
    d.transport = here;
    d.ledger = ledger;
    d.train = setup.worker.train;
    d.evaluate = setup.worker.evaluate;
    d.learning_rate = setup.learning_rate;
    d.base_learning_rate = base_learning_rate(setup.worker.optimizer);
    d.step_deadline = setup.step_deadline;
    d.release = [weak = std::weak_ptr(agents)](Rank owner, const std::vector<RefId>& refs) {
      if (const auto reachable = weak.lock()) {
        caf::anon_send(reachable->actors[owner.index()], Release{refs});
      }
    };
    driver = spawn_driver(*host, std::move(d));
  }

  void end() {
    const Error why(Errc::ClusterClosed, "the trainer was shut down");
    ledger->close();
    here->close(why);
    for (const auto& desk : desks) {
      desk->transport->close(why);
    }
    std::vector<caf::actor> everybody;
    if (driver) {
      everybody.push_back(caf::actor_cast<caf::actor>(driver));
    }
    for (std::size_t r = 0; r < agents->actors.size(); ++r) {
      everybody.push_back(caf::actor_cast<caf::actor>(agents->actors[r]));
      everybody.push_back(caf::actor_cast<caf::actor>(plan_threads[r]));
    }
    host->end(everybody, std::chrono::steady_clock::now() + setup.end_deadline);
  }

  [[nodiscard]] at::Tensor receive(Rank from, const Tag& tag, Deadline deadline) const {
    const Future<at::Tensor> arrival = here->receive(from, tag);
    if (!arrival.wait_until(deadline)) {
      throw Error(Errc::ClusterTimeout,
                  "rank " + to_string(from) + " has announced a tensor that has not arrived");
    }
    return arrival.get();
  }

  [[nodiscard]] std::vector<StateListing> ask_state(Step request, bool tensors) const {
    std::vector<Future<StateListing>> answers;
    for (std::size_t r = 0; r < plan_threads.size(); ++r) {
      answers.push_back(ask<StateListing>(*host,
                                          plan_threads[r],
                                          plan_thread_name(r),
                                          setup.step_deadline,
                                          SendState{.request = request, .tensors = tensors}));
    }
    return gather(answers);
  }
};

Crew::Crew(std::shared_ptr<ActorHost> host, std::shared_ptr<StepLedger> ledger, CrewSetup setup)
    : impl_(std::make_unique<Impl>(std::move(host), std::move(ledger), std::move(setup))) {
  impl_->spawn_workers();
  impl_->hand_out_plan();
  impl_->start_driver();
}

Crew::~Crew() = default;

int Crew::ranks() const {
  return impl_->setup.ranks;
}

void Crew::submit(Step submission) {
  caf::anon_send(impl_->driver, Submit{submission});
}

std::vector<at::Tensor> Crew::fetch(Rank owner, const std::vector<RefId>& refs) {
  const Step request = impl_->ledger->next_request();
  gather(std::vector{ask<Fetched>(*impl_->host,
                                  impl_->agents->actors[owner.index()],
                                  agent_name(owner.index()),
                                  kAgentLimit,
                                  Fetch{.request = request, .refs = refs})});
  std::vector<at::Tensor> values;
  const Deadline deadline = std::chrono::steady_clock::now() + kAgentLimit;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    values.push_back(impl_->receive(owner, data_tag(kResultEdge, request, i), deadline));
  }
  return values;
}

std::vector<StateListing> Crew::list_state() {
  return impl_->ask_state(impl_->ledger->next_request(), false);
}

std::vector<std::vector<StateTensor>> Crew::read_state() {
  const Step request = impl_->ledger->next_request();
  const std::vector<StateListing> listings = impl_->ask_state(request, true);
  const Deadline deadline = std::chrono::steady_clock::now() + impl_->setup.step_deadline;
  std::vector<std::vector<StateTensor>> state(listings.size());
  for (std::size_t r = 0; r < listings.size(); ++r) {
    for (std::size_t i = 0; i < listings[r].names.size(); ++i) {
      state[r].push_back({listings[r].names[i],
                          impl_->receive(Rank(r), data_tag(kStateEdge, request, i), deadline)});
    }
  }
  return state;
}

void Crew::write_state(const std::vector<std::vector<StateTensor>>& state) {
  const Step request = impl_->ledger->next_request();
  std::vector<Future<StateTaken>> answers;
  for (std::size_t r = 0; r < state.size(); ++r) {
    TakeState order{.request = request};
    for (std::size_t i = 0; i < state[r].size(); ++i) {
      impl_->here->send(Rank(r), data_tag(kStateEdge, request, i), state[r][i].tensor);
      order.names.push_back(state[r][i].name);
    }
    answers.push_back(ask<StateTaken>(*impl_->host,
                                      impl_->plan_threads[r],
                                      plan_thread_name(r),
                                      impl_->setup.step_deadline,
                                      std::move(order)));
  }
  gather(answers);
}

std::vector<StatusReply> Crew::status() {
  std::vector<Future<StatusReply>> answers;
  for (std::size_t r = 0; r < impl_->agents->actors.size(); ++r) {
    answers.push_back(ask<StatusReply>(
        *impl_->host, impl_->agents->actors[r], agent_name(r), kAgentLimit, Status{}));
  }
  return gather(answers);
}

}  // namespace stagecraft
