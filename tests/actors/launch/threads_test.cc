/// Tests ranks that are threads: how they get their setups and shapes, and how their end is told.
/// tests/conformance/launcher_conformance.h holds what every launcher promises.
#include "stagecraft/actors/launch/threads.h"

#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>

#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/actors/one_stage.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the setup of rank 0, the only one.
RankSetup setup_of_only_rank() {
  const Program program = one_stage_program();
  const Schedule schedule = gpipe(program.stage_graph(), 2);
  Job job;
  job.plan_id = PlanId(7);
  job.program = program.shared();
  job.train = std::make_shared<const Plan>(
      lower_schedule(program, schedule, Layout::of(schedule), /*training=*/true));
  job.optimizer = Sgd{};
  return rank_setup(job, Rank(0));
}

/// Refuses every plan, and says who asks.
RankSetup no_setup(const WorkerContext& context, const LoadPlan& m) {
  throw Error(Errc::UsageArgument,
              "no plan " + to_string(m.plan) + " for " + peer_name(context.rank) +
                  " at the end of " + peer_name(context.transport->self()));
}

/// The worker of a rank, whose actors end with the test.
class Launched {
 public:
  explicit Launched(const Worker& worker)
      : worker_(worker),
        plan_thread_(caf::actor_cast<caf::actor>(worker.plan_thread)),
        agent_(caf::actor_cast<caf::actor>(worker.agent)) {}
  ~Launched() { host().end({plan_thread_, agent_}, kTestPatience); }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  static ActorHost& host() { return ActorHost::of_this_process(); }
  [[nodiscard]] const Worker& worker() const { return worker_; }

  template <class Reply, class Message>
  [[nodiscard]] Reply answer(const Message& message) const {
    return ask<Reply>(host(), worker_.plan_thread, "the worker", kTestPatience, message).get();
  }
  void end_plan_thread() const { CHECK(host().end({plan_thread_}, kTestPatience) == 0); }
  void end_agent() const { CHECK(host().end({agent_}, kTestPatience) == 0); }

 private:
  const Worker worker_;
  const caf::actor plan_thread_, agent_;
};

TEST_CASE("a shape lies on the shelf until its rank takes it, for its request alone",
          "[actors][launch]") {
  Shelf shelf;
  shelf.put({.rank = Rank(0), .number = 1}, Submission(5));
  shelf.put({.rank = Rank(0), .number = 2}, Submission(6));
  shelf.put({.rank = Rank(1), .number = 3}, Submission(5));
  CHECK(shelf.take(Rank(0), Submission(6)).number == 2);
  CHECK(shelf.take(Rank(1), Submission(5)).number == 3);
  CHECK(shelf.take(Rank(0), Submission(5)).number == 1);
  const auto [rank, request] = GENERATE(table<int, int>({{0, 5}, {1, 6}, {2, 5}}));
  CAPTURE(rank, request);
  CHECK_THAT(refusal([&] { (void)shelf.take(Rank(rank), Submission(request)); }, Errc::Internal),
             ContainsSubstring("a shape that was not handed over"));
}

TEST_CASE("a shape that is put again for a request replaces the first", "[actors][launch]") {
  Shelf shelf;
  shelf.put({.rank = Rank(0), .number = 1}, Submission(5));
  shelf.put({.rank = Rank(0), .number = 2}, Submission(5));
  CHECK(shelf.take(Rank(0), Submission(5)).number == 2);
  CHECK(thrown_by([&] { (void)shelf.take(Rank(0), Submission(5)); }) == Errc::Internal);
}

TEST_CASE("a rank asks its source for the plan that it is told to load, and tells its refusal",
          "[actors][launch]") {
  const InprocNetwork network(2);
  const Launched rank(launch_thread(Launched::host(),
                                    Rank(1),
                                    network.endpoint(Rank(1)),
                                    std::make_shared<StepValues>(),
                                    no_setup));
  const auto ready = rank.answer<Ready>(LoadPlan{.rank = Rank(1), .plan = PlanId(9)});
  CHECK(ready.rank == Rank(1));
  REQUIRE_FALSE(ready.error.empty());
  const Error error = to_error(ready.error);
  CHECK(error.code() == Errc::UsageArgument);
  CHECK_THAT(error.message(), ContainsSubstring("no plan 9 for rank 1 at the end of rank 1"));
}

TEST_CASE("a rank of a binding has its setup from its launch, and its state from the driver's end",
          "[actors][launch]") {
  const std::unique_ptr<Binding> binding = ThreadLauncher().bind(1, LastRank::LikeOthers);
  const Launched rank(binding->launch(setup_of_only_rank()));
  REQUIRE(rank.answer<Ready>(LoadPlan{.rank = Rank(0)}).error.empty());
  const Submission request(3);
  binding->driver_end()->send(Rank(0), state_tag(PlanId(7), request, 0), at::ones({3}));
  CHECK(
      rank.answer<StateTaken>(TakeState{.request = request, .names = {"weight:w"}}).error.empty());
}

TEST_CASE("a rank of a binding loads the shape that was handed over for the request",
          "[actors][launch]") {
  const std::unique_ptr<Binding> binding = ThreadLauncher().bind(1, LastRank::LikeOthers);
  const RankSetup setup = setup_of_only_rank();
  const Launched rank(binding->launch(setup));
  REQUIRE(rank.answer<Ready>(LoadPlan{.rank = Rank(0)}).error.empty());
  const auto load = [&](int request) {
    return rank.answer<ShapeLoaded>(LoadShape{.rank = Rank(0), .request = Submission(request)})
        .error;
  };
  binding->hand_over(
      {.rank = Rank(0), .stages = setup.stages, .share = {}}, setup.plan_id, Submission(4));
  const ErrorChain other = load(3);
  REQUIRE_FALSE(other.empty());
  CHECK(to_error(other).code() == Errc::Internal);
  CHECK(load(4).empty());
}

TEST_CASE("a rank that the binding has no place for is refused before it starts",
          "[actors][launch][bad-input]") {
  const std::unique_ptr<Binding> binding = ThreadLauncher().bind(2, LastRank::LikeOthers);
  RankSetup setup;
  setup.train.rank.rank = Rank(2);
  CHECK(thrown_by([&] { (void)binding->launch(setup); }) == Errc::TransportRefused);
}

TEST_CASE("the end of a thread is told without a cause, whichever of its actors ends first",
          "[actors][launch]") {
  const bool agent_first = GENERATE(true, false);
  CAPTURE(agent_first);
  const InprocNetwork network(1);
  const Launched rank(launch_thread(Launched::host(),
                                    Rank(0),
                                    network.endpoint(Rank(0)),
                                    std::make_shared<StepValues>(),
                                    no_setup));
  const Future<std::string> end = end_of_thread(rank.worker());
  CHECK_FALSE(end.ready());
  agent_first ? rank.end_agent() : rank.end_plan_thread();
  REQUIRE(end.wait_until(patience()));
  CHECK(end.get().empty());
  agent_first ? rank.end_plan_thread() : rank.end_agent();
  const Future<std::string> late = end_of_thread(rank.worker());  // both have ended
  REQUIRE(late.wait_until(patience()));
  CHECK(late.get().empty());
}

TEST_CASE("a rank that is a thread cannot be replaced, and the way out is said",
          "[actors][launch][bad-input]") {
  CHECK_THAT(refusal([] { ThreadLauncher().replace(Rank(3)); }),
             ContainsSubstring("rank 3 is a thread of this process") &&
                 ContainsSubstring("load a checkpoint"));
}

}  // namespace
}  // namespace stagecraft
