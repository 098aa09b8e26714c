/// Tests how the waits of a crew end when a worker is lost. Its workers follow a script.
#include "stagecraft/actors/crew/crew.h"

#include <chrono>
#include <future>
#include <thread>

#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "stagecraft/actors/crew/ended_workers.h"
#include "stagecraft/base/manual_clock.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/tests/actors/crew/played_workers.h"
#include "stagecraft/tests/actors/driver/wait_plan.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

/// Holds three ranks without stages. Only the loss of a worker ends a wait of their crew.
struct Played {
  explicit Played(std::map<int, Part> parts)
      : launcher(std::move(parts)), crew(launcher, std::make_shared<StepLedger>(), job(), clock) {}

  static Job job() {
    Workload workload;
    const at::Tensor w = at::ones({3}).set_requires_grad(true);
    workload.parameters = {{"w", w}};
    workload.forward = [w](const Tensors& x) { return Tensors{at::mul(w, x[0])}; };
    workload.loss = [](const Tensors& out, const Tensors&) { return at::mean(out[0]); };
    Job job;
    job.program = internal::compile_workload(workload,
                                             {.inputs = {at::ones({4, 3})},
                                              .labels = {at::ones({4, 3})},
                                              .loss = {},
                                              .microbatches = 2})
                      .shared();
    Plan plan = wait_plan();
    for (PlanStage& stage : plan.tables.stages) {
      stage.program = StageId(0);  // the only one
    }
    job.train = std::make_shared<const Plan>(std::move(plan));
    job.options.state_deadline = std::chrono::hours(1);
    return job;
  }

  PlayedLauncher launcher;
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  Crew crew;
};

void check_lost(const Error& error, int rank) {
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(rank));
  CHECK_THAT(error.what(),
             ContainsSubstring(fmt::format("rank {0} is lost: process 4711 of rank {0} was killed; "
                                           "to continue: cluster.replace(Rank({0})), then ",
                                           rank)));
}

TEST_CASE("a worker lost between announcing its state and sending it ends the wait (CR-3)",
          "[actors][crew][faults]") {
  Played p({{1, Part::Announce}});
  check_lost(thrown_error([&] {
               (void)p.crew.read_state(all_of({Rank(0), Rank(1), Rank(2)}));
             }),
             1);
}

TEST_CASE("a worker that is lost cannot be asked, and the cause is said (CR-3)",
          "[actors][crew][faults]") {
  Played p({{2, Part::Announce}});
  check_lost(thrown_error([&] {
               (void)p.crew.read_state(all_of({Rank(0), Rank(1), Rank(2)}));
             }),
             2);
  check_lost(thrown_error([&] { (void)p.crew.list_state(); }), 2);
  check_lost(thrown_error([&] { (void)p.crew.read_gradients(); }), 2);
}

TEST_CASE("a worker that is lost while its trainer is made is named with the cause (CR-3)",
          "[actors][crew][faults]") {
  const Error error = thrown_error([] { const Played p({{0, Part::EndWithPlan}}); });
  check_lost(error, 0);
  CHECK_THAT(error.advice(), ContainsSubstring("then make the trainer again"));
}

TEST_CASE("a rank does not wait for a copy whose keeper is lost (CR-3)", "[actors][crew][faults]") {
  Played p({{1, Part::KeepAndVanish}});
  const RecoveryPoint point{.updates = 3, .lost = {true, false, false}};
  check_lost(thrown_error([&] { p.crew.take_mirrors(point, ""); }), 1);
}

TEST_CASE("a wait for a tensor ends with the loss of its sender alone (CR-3)",
          "[actors][crew][faults]") {
  Played p({{1, Part::Announce}});
  (void)thrown_error([&] { (void)p.crew.read_state(all_of({Rank(0), Rank(1), Rank(2)})); });
  const Promise<at::Tensor> never;
  check_lost(thrown_error([&] { (void)p.crew.wait(Rank(1), never.future(), p.crew.deadline(1h)); }),
             1);
  CHECK_FALSE(p.crew.wait(Rank(0), never.future(), p.crew.deadline(-1ms)));
  Promise<at::Tensor> here;
  (void)here.set_value(number(7));
  CHECK(p.crew.wait(Rank(1), here.future(), p.crew.deadline(1h)));  // arrived before the loss
}

TEST_CASE("a wait for a tensor ends at its deadline, a time of the crew's clock",
          "[actors][crew]") {
  Played p({});
  const Promise<at::Tensor> never;
  auto waiting = std::async(std::launch::async, [&] {
    return p.crew.wait(Rank(0), never.future(), p.crew.deadline(1h));
  });
  CHECK(eventually([&] { return p.clock->waits() == 1; }));
  p.clock->advance(1h - 1ms);
  CHECK(waiting.wait_for(0s) == std::future_status::timeout);
  p.clock->advance(1ms);
  CHECK_FALSE(waiting.get());
}

TEST_CASE("a loss ends the waits for that worker, and not those for its successor",
          "[actors][crew][faults]") {
  ActorHost& host = ActorHost::of_this_process();
  const InprocNetwork network(1);
  const auto start = [&] {
    const auto context = std::make_shared<WorkerContext>();
    context->rank = Rank(0);
    context->transport = network.endpoint(Rank(0));
    return Worker{.plan_thread = host.system().spawn<caf::detached>(
                      played, context, Part::Answer, std::make_shared<PlayedLog>()),
                  .agent = spawn_agent(host, context)};
  };
  const auto end = [&](const Worker& worker) {
    CHECK(host.end({caf::actor_cast<caf::actor>(worker.plan_thread),
                    caf::actor_cast<caf::actor>(worker.agent)},
                   kTestPatience) == 0);
  };
  EndedWorkers workers(1);
  const Worker first = start(), second = start();
  workers.watch(Rank(0), first);
  const Promise<at::Tensor> never;
  EndedWorkers::Waited waited{};
  std::thread waiting([&] { waited = workers.wait(never.future(), {Rank(0)}, patience()); });
  end(first);
  waiting.join();
  CHECK(waited == EndedWorkers::Waited::Lost);

  workers.watch(Rank(0), second);
  CHECK_FALSE(workers.has(Rank(0)));
  CHECK(workers.wait(never.future(), {Rank(0)}, already_over()) == EndedWorkers::Waited::Late);
  end(second);
  CHECK(eventually([&] { return workers.has(Rank(0)); }));
}

}  // namespace
}  // namespace stagecraft
