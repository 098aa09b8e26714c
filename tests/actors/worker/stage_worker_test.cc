/// Tests a stage worker without the actor around it: its reaction to each message in each phase.
#include "stagecraft/actors/worker/stage_worker.h"

#include <cstring>
#include <stdexcept>
#include <thread>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>

#include "stagecraft/actors/executor/setup/setup_wire.h"
#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/libtorch/same_bits.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/futures/transport/forwarding_transport.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/actors/one_stage.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/no_new_threads.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

struct Fixture {
  Fixture() {
    context->rank = Rank(0);
    context->transport = network.endpoint(Rank(0));
    Job job;
    job.program = program.shared();
    const Schedule schedule = gpipe(program.stage_graph(), 2);
    const Layout layout = Layout::of(schedule);
    job.train = train =
        std::make_shared<const Plan>(lower_schedule(program, schedule, layout, true));
    job.optimizer = Sgd{.lr = 1.0};
    job.options.before_instruction = [this](Rank, const Instruction& i) {
      if (before) {
        before(i);
      }
      if (i.op == fails_at) {
        throw std::runtime_error("injected");
      }
    };
    worker.emplace(context,
                   [setup = rank_setup(job, Rank(0))](const WorkerContext&, const LoadPlan&) {
                     return setup;
                   });
  }

  /// Loads the plan with the program's weights.
  Ready load() {
    Ready ready = worker->load({.rank = Rank(0)});
    CHECK(take(at::ones({3})).error.empty());
    return ready;
  }

  StepReport run(std::int64_t submission) {
    for (const Feed& feed : train->feeds) {
      here->send(
          Rank(0),
          {.submission = Submission(submission), .edge = feed.edge, .microbatch = feed.microbatch},
          at::ones({2, 3}));
    }
    return worker->run({.submission = Submission(submission), .learning_rate = 1.0});
  }

  StateTaken take(const at::Tensor& tensor, std::vector<std::string> names = {"weight:w"}) {
    const Submission request(1000 + requests++);
    here->send(Rank(0), state_tag(PlanId(), request, 0), tensor);
    return worker->take_state({.request = request, .names = std::move(names)});
  }

  at::Tensor weight() {
    const Submission request(1000 + requests++);
    const StateListing listing = worker->send_state({.request = request});
    REQUIRE(listing.error.empty());
    return here->receive(Rank(0), state_tag(PlanId(), request, 0)).get();
  }

  const Program program = one_stage_program();
  const InprocNetwork network{2};
  const std::shared_ptr<Transport> here = network.endpoint(kDriver);
  const std::shared_ptr<WorkerContext> context = std::make_shared<WorkerContext>();
  std::shared_ptr<const Plan> train;
  std::optional<Op> fails_at;
  std::function<void(const Instruction&)> before;
  std::optional<StageWorker> worker;
  int requests = 0;
};

Errc code_of(const ErrorChain& chain) {
  REQUIRE_FALSE(chain.empty());
  CHECK(to_error(chain).context().rank == Rank(0));
  return to_error(chain).code();
}

/// Holds what a rank of another process is started with.
struct Remote {
  Remote() {
    Fixture f;
    job.program = f.program.shared();
    job.train = f.train;
    job.plan_id = PlanId(7);
    context->transport = network.endpoint(Rank(0));
    context->rank = Rank(0);
  }

  void send(std::size_t index, const at::Tensor& tensor) {
    network.endpoint(kDriver)->send(Rank(0), setup_tag(job.plan_id, index), tensor);
  }
  [[nodiscard]] Ready load(std::chrono::milliseconds patience) {
    StageWorker worker(context, received_setup);
    return worker.load({.rank = Rank(0), .plan = job.plan_id, .patience_ms = patience.count()});
  }

  Job job;
  const InprocNetwork network{1};
  const std::shared_ptr<WorkerContext> context = std::make_shared<WorkerContext>();
};

at::Tensor as_tensor(const std::string& bytes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

TEST_CASE("a worker takes its setup from the data plane, and says what is wrong with it",
          "[actors][worker][setup]") {
  Remote r;
  const EncodedSetup encoded = encode(rank_setup(r.job, Rank(0)));
  SECTION("as it was sent") {
    r.send(0, as_tensor(encoded.bytes));
    for (std::size_t i = 0; i < encoded.tensors.size(); ++i) {
      r.send(i + 1, encoded.tensors[i]);
    }
    CHECK(r.load(std::chrono::minutes(5)).error.empty());
  }
  SECTION("cut short") {
    r.send(0, as_tensor(encoded.bytes.substr(0, encoded.bytes.size() / 2)));
    CHECK(code_of(r.load(std::chrono::minutes(5)).error) == Errc::WireFormat);
  }
  SECTION("never") {
    CHECK(code_of(r.load(std::chrono::milliseconds(1)).error) == Errc::ClusterTimeout);
  }
}

TEST_CASE("a worker without a plan does nothing but take one", "[actors][worker]") {
  Fixture f;
  CHECK(code_of(f.run(0).error) == Errc::WorkerPhase);
  CHECK(code_of(f.worker->send_state({}).error) == Errc::WorkerPhase);
  CHECK(code_of(f.worker->take_state({}).error) == Errc::WorkerPhase);
  CHECK(code_of(f.worker->load({.rank = Rank(1)}).error) == Errc::WorkerPhase);
  CHECK(f.load().error.empty());
  CHECK(f.run(1).committed);
}

TEST_CASE("W-3: a worker that was loaded runs steps when its weights have come",
          "[actors][worker]") {
  Fixture f;
  REQUIRE(f.worker->load({.rank = Rank(0)}).error.empty());
  CHECK(code_of(f.run(0).error) == Errc::WorkerPhase);
  CHECK(code_of(f.worker->send_state({}).error) == Errc::WorkerPhase);
  const StateListing listing = f.worker->send_state({.tensors = false});  // the names are known
  CHECK(listing.names == std::vector<std::string>{"weight:w"});
  CHECK(code_of(f.take(at::ones({3}), {}).error) == Errc::Internal);  // weights must be given
  CHECK(f.take(at::ones({3})).error.empty());
  CHECK(f.run(1).committed);
}

TEST_CASE("a rank sends the tensors that were picked, and knows no others", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  const StateListing twice = f.worker->send_state({.request = Submission(8), .only = {0, 0}});
  CHECK(twice.names == std::vector<std::string>{"weight:w", "weight:w"});
  CHECK(f.here->receive(Rank(0), state_tag(PlanId(), Submission(8), 1)).get().numel() == 3);
  const auto position = GENERATE(-1, 1, 1'000'000);
  CHECK(code_of(f.worker->send_state({.request = Submission(9), .only = {position}}).error) ==
        Errc::Internal);
}

TEST_CASE("tensors of a write that the rank does not take are dropped", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  const Submission next(1000 + f.requests);
  f.here->send(Rank(0), state_tag(PlanId(), next, 1), at::ones({3}));
  CHECK(f.take(at::ones({3})).error.empty());
  CHECK(f.context->transport->bytes_waiting() == 0);
  f.here->send(Rank(0), state_tag(PlanId(), next, 2), at::ones({3}));
  CHECK(f.context->transport->bytes_waiting() == 0);
  CHECK(f.context->transport->refused() == 1);
}

TEST_CASE("a rank lists its state anew once it has another", "[actors][worker]") {
  Fixture f;
  f.load();
  CHECK(f.worker->send_state({.tensors = false}).names == std::vector<std::string>{"weight:w"});
  CHECK(f.run(0).committed);
  const at::Tensor trained = f.weight();
  CHECK_FALSE(same_bits(trained, at::ones({3})));
  f.load();  // another executor
  CHECK(same_bits(f.weight(), at::ones({3})));
  CHECK(f.take(at::full({3}, 4.0)).error.empty());
  CHECK(same_bits(f.weight(), at::full({3}, 4.0)));
}

TEST_CASE("a state that is announced leaves no copy of that of others (LV-1)", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  CHECK(f.worker->send_state({.tensors = false}).updates >= 0);
  CHECK(f.worker->take_state({.request = Submission(8), .announced = true, .updates = 5})
            .error.empty());
  CHECK(f.worker->send_state({.tensors = false}).updates == kNoWeights);
  REQUIRE(f.take(at::full({3}, 5.0)).error.empty());
  CHECK(f.worker->send_state({.tensors = false}).updates >= 0);
}

TEST_CASE("a ready worker runs steps and tells their losses", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  const StepReport done = f.run(7);
  REQUIRE(done.error.empty());
  CHECK(done.submission == Submission(7));
  CHECK((done.losses == std::vector<MicrobatchLoss>{{Microbatch(0), 0.0}, {Microbatch(1), 0.0}}));
}

TEST_CASE("a failure is a value with its place, and the worker stays ready (W-2)",
          "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  f.fails_at = Op::Accumulate;
  const StepReport done = f.run(0);
  CHECK(code_of(done.error) == Errc::WorkerFailed);
  CHECK(done.submission == Submission(0));
  CHECK_FALSE(done.committed);
  f.fails_at.reset();
  CHECK(f.run(1).committed);
}

TEST_CASE("a worker lost inside its update takes no step until it is given a state",
          "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  f.fails_at = Op::Update;
  CHECK(code_of(f.run(0).error) == Errc::WorkerLost);
  f.fails_at.reset();
  CHECK(code_of(f.run(1).error) == Errc::WorkerPhase);
  CHECK(code_of(f.worker->send_state({}).error) == Errc::WorkerPhase);
  const StateListing listing = f.worker->send_state({.tensors = false});
  REQUIRE(listing.error.empty());
  CHECK(listing.names == std::vector<std::string>{"weight:w"});
  CHECK(listing.shapes == std::vector<std::vector<std::int64_t>>{{3}});
  CHECK(listing.types == std::vector<std::string>{"Float"});

  REQUIRE(f.take(at::full({3}, 5.0)).error.empty());
  CHECK(f.weight().equal(at::full({3}, 5.0)));
  CHECK(f.run(2).committed);
}

TEST_CASE("LV-1: a worker tells of how many updates its weights are, while they are whole",
          "[actors][worker][recovery]") {
  Fixture f;
  const auto updates = [&] { return f.worker->send_state({.tensors = false}).updates; };
  REQUIRE(f.worker->load({.rank = Rank(0)}).error.empty());
  CHECK(updates() == kNoWeights);
  REQUIRE(f.take(at::ones({3})).error.empty());
  CHECK(updates() == 0);
  f.fails_at = Op::Vote;
  CHECK(code_of(f.run(0).error) == Errc::WorkerFailed);
  CHECK(updates() == 0);
  f.fails_at.reset();
  CHECK(f.run(1).committed);
  CHECK(updates() == 1);
  f.fails_at = Op::Update;
  CHECK(code_of(f.run(2).error) == Errc::WorkerLost);
  CHECK(updates() == kNoWeights);
}

TEST_CASE("a state that does not fit changes nothing (W-3)", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  CHECK(code_of(f.take(at::full({3}, 5.0), {"weight:v"}).error) == Errc::Internal);
  CHECK(code_of(f.take(at::full({4}, 5.0)).error) == Errc::Internal);
  CHECK(code_of(f.take(at::full({3}, 5, at::kLong)).error) == Errc::Internal);
  CHECK(f.weight().equal(at::ones({3})));
}

TEST_CASE("LV-1: weights that other ranks may have left behind are no copy of theirs",
          "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  REQUIRE(f.take(at::full({3}, 5.0)).error.empty());
  const auto updates = [&] { return f.worker->send_state({.tensors = false}).updates; };
  CHECK(updates() == 0);
  CHECK_FALSE(f.take(at::full({4}, 5.0)).error.empty());
  CHECK(updates() == kNoWeights);
}

TEST_CASE("a worker that waits for a state says that it waits for the driver", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  StateTaken taken;
  const Submission next(1000 + f.requests);
  std::thread rank([&] { taken = f.worker->take_state({.request = next, .names = {"weight:w"}}); });
  const bool told =
      eventually([&] { return f.context->progress->waits.missing() == std::vector{kDriver}; });
  f.context->transport->close(Error(Errc::ClusterClosed, "the test ended it"));
  rank.join();
  CHECK(told);
  CHECK(code_of(taken.error) == Errc::TransportClosed);
}

TEST_CASE("a rank waits for another one's copy until the epoch of the request is over (DT-1)",
          "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  StateTaken taken;
  std::thread rank([&] { taken = f.worker->take_state({.from = Rank(1), .epoch = Epoch(3)}); });
  const bool told =
      eventually([&] { return f.context->progress->waits.missing() == std::vector{Rank(1)}; });
  f.context->transport->advance(PlanId(), Epoch(4), Error(Errc::WorkerLost, "the test lost it"));
  rank.join();
  CHECK(told);
  CHECK(code_of(taken.error) == Errc::WorkerAborted);
}

TEST_CASE("the state a worker sends is a copy", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  const at::Tensor before = f.weight();
  REQUIRE(f.run(0).committed);
  CHECK(before.equal(at::ones({3})));
  CHECK_FALSE(f.weight().equal(before));
}

TEST_CASE("what ranks do is told also when one of their agents is gone", "[actors][worker]") {
  ActorHost& host = ActorHost::of_this_process();
  const InprocNetwork network(2);
  std::vector<AgentActor> agents;
  for (int r = 0; r < 2; ++r) {
    const auto context = std::make_shared<WorkerContext>();
    context->rank = Rank(r);
    context->transport = network.endpoint(Rank(r));
    context->progress->instruction = 4 + r;
    agents.push_back(spawn_agent(host, context));
  }
  CHECK(host.end({caf::actor_cast<caf::actor>(agents[0])}, kTestPatience) == 0);
  const auto replies = ask_status(host, agents, std::chrono::seconds(60));
  REQUIRE(replies.size() == 2);
  CHECK_FALSE(replies[0]);
  REQUIRE(replies[1]);
  CHECK(replies[1]->rank == Rank(1));
  CHECK(replies[1]->instruction == 5);
  CHECK(host.end({caf::actor_cast<caf::actor>(agents[1])}, kTestPatience) == 0);
}

TEST_CASE("an agent that is told to end its worker closes the transport with the reason",
          "[actors][worker]") {
  ActorHost& host = ActorHost::of_this_process();
  const InprocNetwork network(2);
  const auto context = std::make_shared<WorkerContext>();
  context->rank = Rank(1);
  context->transport = network.endpoint(Rank(1));
  const AgentActor agent = spawn_agent(host, context);
  const Future<at::Tensor> pending = context->transport->receive(Rank(0), {});
  const EndWorker order{.reason = to_chain(Error(Errc::ClusterClosed, "the test ended it"))};
  const auto ended = ask<WorkerEnded>(host, agent, "the agent", std::chrono::seconds(60), order);
  CHECK(ended.get().rank == Rank(1));
  CHECK(failure_of(pending) == Errc::TransportClosed);
  CHECK(host.end({caf::actor_cast<caf::actor>(agent)}, kTestPatience) == 0);
}

TEST_CASE("an exception that a worker cannot handle is the reason of its end", "[actors][worker]") {
  struct NoRoom final : ForwardingTransport {
    using ForwardingTransport::ForwardingTransport;
    void close(const Error&) override { throw std::bad_alloc(); }
  };
  ActorHost& host = ActorHost::of_this_process();
  const InprocNetwork network(2);
  const auto context = std::make_shared<WorkerContext>();
  context->rank = Rank(1);
  context->transport = std::make_shared<NoRoom>(network.endpoint(Rank(1)));
  const AgentActor agent = spawn_agent(host, context);
  caf::scoped_actor here(host.system());
  here->monitor(agent);
  here->send(agent, EndWorker{.reason = to_chain(Error(Errc::ClusterClosed, "the test ended it"))});
  here->receive([&](const caf::down_msg& m) {
    REQUIRE(m.reason == caf::sec::runtime_error);
    REQUIRE(m.reason.context().match_elements<std::string>());
    CHECK_THAT(m.reason.context().get_as<std::string>(0),
               Catch::Matchers::ContainsSubstring("memory ran out"));
  });
}

TEST_CASE("a rank begins no instruction once its transport is closed or the epoch is over (X-4)",
          "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  const bool close = GENERATE(true, false);
  std::vector<Op> begun;
  f.before = [&](const Instruction& i) {
    begun.push_back(i.op);
    if (i.op == Op::Accumulate) {
      const Error why(Errc::ClusterClosed, "the test ended it");
      close ? f.context->transport->close(why)
            : f.context->transport->advance(PlanId(), Epoch(1), why);
    }
  };
  const at::Tensor weight = close ? at::Tensor() : f.weight();
  CHECK(code_of(f.run(0).error) == (close ? Errc::TransportClosed : Errc::WorkerAborted));
  CHECK(begun.back() == Op::Accumulate);  // it is not done, and no later instruction has begun
  if (!close) {
    CHECK(f.weight().equal(weight));
  }
}

TEST_CASE("behind the vote an abort comes too late to stop the updates (X-4)", "[actors][worker]") {
  Fixture f;
  REQUIRE(f.load().error.empty());
  f.before = [&](const Instruction& i) {
    if (i.op == Op::Update) {
      f.context->transport->advance(PlanId(), Epoch(1), Error(Errc::WorkerFailed, "too late"));
    }
  };
  CHECK(f.run(0).committed);
}

TEST_CASE("a worker for which there is no thread is an error, and nobody waits for it",
          "[actors][stage_worker]") {
  ActorHost& host = ActorHost::of_this_process();
  std::vector<caf::actor> started;
  const auto start = [&] {
    const auto context = std::make_shared<WorkerContext>();
    started.push_back(caf::actor_cast<caf::actor>(spawn_plan_thread(host, context, {})));
  };
  std::optional<Errc> thrown;
  int left = -1;
  {
    const NoNewThreads none;
    thrown = thrown_by(start);
    left = host.end(started, kTestPatience);  // finds no thread either
  }
  CHECK(thrown == Errc::DeviceOutOfMemory);
  CHECK(left == 0);
}

}  // namespace
}  // namespace stagecraft
