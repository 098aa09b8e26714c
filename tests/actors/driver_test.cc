/// The driver against workers that do as a script says: no model, real transports, real agents.
#include "stagecraft/actors/driver.h"

#include <map>
#include <mutex>
#include <stdexcept>

#include "stagecraft/actors/data_tags.h"
#include "stagecraft/actors/stage_worker.h"
#include "stagecraft/actors/timeline_tensor.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

enum class Act {
  Commit,  ///< answers well
  Fail,    ///< answers with an error of its own
  Wait,    ///< waits for a tensor that never comes, as a peer of a failed rank does
  Lose,    ///< fails inside its update
  Ignore,  ///< deaf to aborts: waits for the test to let it go
  Die,     ///< the actor ends
  Record,  ///< answers well and announces a timeline of two instructions, which the test sends
};

/// What each rank does in each submission (Commit unless said), and what it was asked.
struct Script {
  std::mutex mutex;  // plan threads and the test
  std::map<std::pair<int, std::int64_t>, Act> acts;
  std::map<int, std::vector<StepOrder>> asked;
  Promise<std::monostate> let_go;

  Act next(Rank rank, const StepOrder& m) {
    const std::scoped_lock lock(mutex);
    asked[rank.value].push_back(m);
    const auto found = acts.find({rank.value, m.submission.value});
    return found == acts.end() ? Act::Commit : found->second;
  }
};

StepReport failed(Rank rank, const StepOrder& m, Errc code) {
  Error error(code, "scripted failure");
  error.with(
      {.rank = rank, .stage = StageId(rank.value), .microbatch = Microbatch(1), .task = "0F1"});
  return {.rank = rank, .submission = m.submission, .error = to_chain(error)};
}

StepReport play(Act act, Rank rank, const StepOrder& m, Transport& transport, Script& script) {
  switch (act) {
    case Act::Fail:
      return failed(rank, m, Errc::WorkerFailed);
    case Act::Lose:
      return failed(rank, m, Errc::WorkerLost);
    case Act::Ignore:
      (void)script.let_go.future().wait_until(patience());
      return failed(rank, m, Errc::WorkerAborted);
    case Act::Wait: {
      const auto never = transport.receive(
          kDriver, {.epoch = m.epoch, .submission = m.submission, .edge = EdgeId(99)});
      return failed(rank, m, *failure_of(never));
    }
    case Act::Record:
      return {
          .rank = rank, .submission = m.submission, .committed = m.training, .timeline_rows = 2};
    default:
      return {.rank = rank,
              .submission = m.submission,
              .committed = m.training,
              .losses = rank == Rank(0) ? std::vector<MicrobatchLoss>{{Microbatch(1), 0.5},
                                                                      {Microbatch(0), 1.5}}
                                        : std::vector<MicrobatchLoss>{},
              .gradient_norm = 2.0};
  }
}

PlanActor::behavior_type scripted(PlanActor::pointer,
                                  Rank rank,
                                  const std::shared_ptr<Transport>& transport,
                                  const std::shared_ptr<Script>& script) {
  return {[=](const LoadPlan&) { return Ready{.rank = rank}; },
          [=](const StepOrder& m) {
            const Act act = script->next(rank, m);
            if (act == Act::Die) {
              throw std::runtime_error("this worker ends here");
            }
            return play(act, rank, m, *transport, *script);
          },
          [=](const SendState&) { return StateListing{.rank = rank}; },
          [=](const TakeState&) { return StateTaken{.rank = rank}; }};
}

/// An agent that does what it is told and says nothing.
AgentActor::behavior_type mute_agent(
    AgentActor::stateful_pointer<std::vector<caf::response_promise>> self,
    const std::shared_ptr<WorkerDesk>& desk) {
  return {[desk](const Abort& m) { desk->transport->advance(m.plan, m.epoch, to_error(m.reason)); },
          [self](const Status&) {
            auto never = self->make_response_promise<StatusReply>();
            self->state.push_back(never);
            return never;
          },
          [desk](const EndWorker&) { return WorkerEnded{.rank = desk->rank}; }};
}

struct StageOptions {
  std::chrono::milliseconds deadline = std::chrono::minutes(5);
  bool mute = false;  ///< agents do not say what their ranks do
};

/// A driver with two scripted workers.
class Stage {
 public:
  static constexpr int kRanks = 2;

  explicit Stage(const StageOptions& options = {}) {
    DriverSetup setup;
    for (int r = 0; r < kRanks; ++r) {
      auto desk = std::make_shared<WorkerDesk>();
      desk->rank = Rank(r);
      desk->transport = network.endpoint(Rank(r));
      desks.push_back(desk);
      const PlanActor plan_thread =
          host.system().spawn<caf::detached>(scripted, Rank(r), desk->transport, script);
      setup.members.push_back(
          {plan_thread,
           options.mute ? host.system().spawn(mute_agent, desk) : spawn_agent(host, desk)});
      all.push_back(caf::actor_cast<caf::actor>(setup.members.back().plan_thread));
      all.push_back(caf::actor_cast<caf::actor>(setup.members.back().agent));
    }
    auto plan = std::make_shared<Plan>();
    plan->feeds = {{.to = Rank(0), .edge = EdgeId(0), .microbatch = Microbatch(0)}};
    setup.transport = network.endpoint(kDriver);
    setup.ledger = ledger;
    setup.clock_offsets = {0, 100};
    setup.train = plan;
    setup.evaluate = plan;
    setup.options.learning_rate = {.kind = LearningRate::Kind::Constant, .warmup = 4};
    setup.base_learning_rate = 1.0;
    setup.options.step_deadline = options.deadline;
    driver = spawn_driver(host, std::move(setup));
    all.push_back(caf::actor_cast<caf::actor>(driver));
  }
  ~Stage() {
    ledger->close();
    (void)script->let_go.set_value({});
    CHECK(host.end(all, patience()) == 0);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void expect(int rank, std::int64_t submission, Act act) {
    const std::scoped_lock lock(script->mutex);
    script->acts[{rank, submission}] = act;
  }

  Future<StepResult> submit(bool training = true) {
    return submit({.training = training, .inputs = {{number(7)}}, .labels = {}});
  }

  Future<StepResult> submit(StepInput input) {
    EnteredStep entered = ledger->enter(std::move(input), 100);
    caf::anon_send(driver, Submit{entered.submission});
    return entered.result;
  }

  /// What the rank's agent says from now on: busy with the first instruction since an hour ago.
  void seems_busy(int rank) {
    const auto begun = std::chrono::steady_clock::now() - std::chrono::hours(1);
    Progress& progress = *desks[static_cast<std::size_t>(rank)]->progress;
    progress.since_ns = std::chrono::nanoseconds(begun.time_since_epoch()).count();
    progress.instruction = 0;
  }

  std::vector<StepOrder> asked(int rank) {
    const std::scoped_lock lock(script->mutex);
    return script->asked[rank];
  }

  ActorHost& host = ActorHost::of_this_process();
  const InprocNetwork network{kRanks};
  const std::shared_ptr<StepLedger> ledger = std::make_shared<StepLedger>();
  const std::shared_ptr<Script> script = std::make_shared<Script>();
  std::vector<std::shared_ptr<WorkerDesk>> desks;
  std::vector<caf::actor> all;
  DriverActor driver;
};

Error error_of(const Future<StepResult>& future) {
  REQUIRE(future.wait_until(patience()));
  try {
    (void)future.get();
  } catch (const Error& error) {
    return error;
  }
  FAIL("the step succeeded");
  return {Errc::Internal, ""};
}

TEST_CASE("a step is one StepOrder and one StepReport per rank", "[actors][driver]") {
  Stage stage;
  const Future<StepResult> step = stage.submit();
  REQUIRE(step.wait_until(patience()));
  const StepResult result = step.get();
  CHECK(result.step == 1);
  CHECK(result.ranks.size() == 2);
  CHECK((result.losses == std::vector<double>{1.5, 0.5}));  // by microbatch
  CHECK(result.mean_loss == 1.0);
  CHECK(result.gradient_norm == 2.0);
  CHECK(stage.ledger->committed() == 1);
  for (int rank = 0; rank < Stage::kRanks; ++rank) {
    const std::vector<StepOrder> asked = stage.asked(rank);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].step == Step(0));
    CHECK(asked[0].learning_rate == 0.25);
    CHECK(asked[0].training);
  }
}

TEST_CASE("a step is over when the timelines that its ranks announced are here",
          "[actors][driver]") {
  Stage stage;
  stage.expect(0, 0, Act::Record);
  stage.expect(1, 0, Act::Record);
  const Tag tag = timeline_tag(PlanId(), Epoch(0), Submission(0));
  const auto send = [&](int rank, std::int64_t start) {
    const std::vector<InstructionTime> timeline{{.start = start}, {.start = start + 1}};
    stage.network.endpoint(Rank(rank))->send(kDriver, tag, pack_timeline(timeline));
  };
  send(0, 10);
  const Future<StepResult> step = stage.submit();
  // Both have answered, and the second step has not begun.
  const Future<StepResult> next = stage.submit();
  REQUIRE(eventually([&] { return !stage.asked(0).empty() && !stage.asked(1).empty(); }));
  CHECK_FALSE(step.ready());
  CHECK(stage.asked(0).size() == 1);
  send(1, 20);
  REQUIRE(step.wait_until(patience()));
  const StepResult result = step.get();
  REQUIRE(result.timelines.size() == 2);
  REQUIRE(result.timelines[0].size() == 2);
  REQUIRE(result.timelines[1].size() == 2);
  CHECK(result.timelines[0][1].start == 11);
  CHECK(result.timelines[1][0].start == 120);  // in the driver's clock
  REQUIRE(next.wait_until(patience()));
  CHECK(next.get().timelines[0].empty());
}

TEST_CASE("a step whose timelines do not come by its deadline is done without them (DR-3)",
          "[actors][driver]") {
  Stage stage({.deadline = std::chrono::milliseconds(100)});
  stage.expect(1, 0, Act::Record);
  const Future<StepResult> step = stage.submit();
  REQUIRE(step.wait_until(patience()));
  CHECK(step.get().step == 1);
  CHECK(step.get().timelines[1].empty());
  CHECK(stage.ledger->committed() == 1);
}

TEST_CASE("inputs leave for their ranks when the step starts", "[actors][driver]") {
  Stage stage;
  const Future<StepResult> step = stage.submit();
  REQUIRE(step.wait_until(patience()));
  const Tag tag{.epoch = Epoch(0),
                .submission = Submission(0),
                .edge = EdgeId(0),
                .microbatch = Microbatch(0)};
  CHECK(number_from(stage.network.endpoint(Rank(0))->receive(kDriver, tag)) == 7);
}

TEST_CASE("steps run in the order in which they were submitted, counted and with their rate",
          "[actors][driver]") {
  Stage stage;
  std::vector<Future<StepResult>> steps{stage.submit(), stage.submit(false), stage.submit()};
  for (const auto& step : steps) {
    REQUIRE(step.wait_until(patience()));
  }
  CHECK(steps[0].get().step == 1);
  CHECK(steps[1].get().step == 1);  // an evaluation is no update
  CHECK(steps[2].get().step == 2);
  const std::vector<StepOrder> asked = stage.asked(1);
  REQUIRE(asked.size() == 3);
  CHECK_FALSE(asked[1].training);
  CHECK(asked[2].step == Step(1));
  CHECK(asked[2].learning_rate == 0.5);
}

TEST_CASE("a failing rank fails the step with its place; the other is aborted, the next step works",
          "[actors][driver]") {
  Stage stage;
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Fail);
  const Future<StepResult> failing = stage.submit();
  const Future<StepResult> next = stage.submit();
  const Error error = error_of(failing);
  CHECK(error.code() == Errc::WorkerFailed);
  CHECK(error.context().rank == Rank(1));
  CHECK(error.context().stage == StageId(1));
  CHECK(error.context().microbatch == Microbatch(1));
  CHECK(error.context().task == "0F1");
  REQUIRE(next.wait_until(patience()));
  CHECK(next.get().step == 1);
  const std::vector<StepOrder> asked = stage.asked(0);
  REQUIRE(asked.size() == 2);
  CHECK(asked[1].epoch == Epoch(1));  // keeps DR-2
  CHECK(asked[1].step == Step(0));
}

TEST_CASE("a tensor of an aborted step is refused", "[actors][driver]") {
  Stage stage;
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Fail);
  (void)error_of(stage.submit());
  REQUIRE(
      stage.submit().wait_until(patience()));  // its first word comes after every agent's advance
  const auto before = stage.network.endpoint(Rank(0))->refused();
  stage.network.endpoint(Rank(1))->send(
      Rank(0), {.epoch = Epoch(0), .submission = Submission(0), .edge = EdgeId(3)}, number(1));
  CHECK(stage.network.endpoint(Rank(0))->refused() == before + 1);
  CHECK(thrown_by([&] {
          (void)number_from(stage.network.endpoint(kDriver)->receive(Rank(0), {.epoch = Epoch(0)}));
        }) == Errc::WorkerAborted);
}

TEST_CASE("when ranks disagree on the commit, later steps fail until weights are replaced (DR-4)",
          "[actors][driver]") {
  Stage stage;
  stage.expect(1, 0, GENERATE(Act::Fail, Act::Lose));
  (void)error_of(stage.submit());
  const Error refused = error_of(stage.submit());
  CHECK(refused.code() == Errc::WorkerLost);
  CHECK(refused.cause() != nullptr);
  CHECK(stage.asked(0).size() == 1);
  stage.ledger->resume(9);
  const Future<StepResult> again = stage.submit();
  REQUIRE(again.wait_until(patience()));
  CHECK(again.get().step == 10);
}

TEST_CASE("a worker that ends fails the step at once, and later ones too", "[actors][driver]") {
  Stage stage;
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Die);
  const Error error = error_of(stage.submit());
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(1));
  CHECK(error_of(stage.submit()).code() == Errc::WorkerLost);
}

TEST_CASE("a rank that never answers fails the step after its deadline and is named",
          "[actors][driver]") {
  Stage stage({.deadline = std::chrono::milliseconds(50)});
  stage.expect(1, 0, Act::Ignore);
  stage.seems_busy(1);  // the other one's answer may be late, too
  const Error error = error_of(stage.submit());
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.context().rank == Rank(1));
  CHECK(error_of(stage.submit()).code() == Errc::WorkerLost);
}

TEST_CASE(
    "a late rank is told to abort before it is given up, however little its agent says (DR-2)",
    "[actors][driver]") {
  Stage stage({.deadline = std::chrono::milliseconds(50), .mute = true});
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Wait);
  CHECK(error_of(stage.submit()).code() == Errc::ClusterTimeout);
  // Both answered the abort, so the weights are what they were and the next step may run.
  const Future<StepResult> next = stage.submit();
  REQUIRE(next.wait_until(patience()));
  CHECK(next.get().step == 1);
}

TEST_CASE("what goes wrong in the driver fails its steps with the reason (DR-5)",
          "[actors][driver]") {
  Stage stage;
  const Error error = error_of(stage.submit(StepInput{.inputs = {}, .labels = {}}));
  CHECK(error.code() == Errc::Internal);
  REQUIRE(error.cause() != nullptr);
  CHECK(thrown_by([&] { (void)stage.ledger->enter({}, 1); }) == Errc::Internal);
}

TEST_CASE("a step cancelled before it starts is not sent to anybody", "[actors][driver]") {
  Stage stage;
  const EnteredStep entered = stage.ledger->enter({.inputs = {{number(7)}}, .labels = {}}, 1);
  stage.ledger->close();
  caf::anon_send(stage.driver, Submit{entered.submission});
  CHECK(failure_of(entered.result) == Errc::Cancelled);
  CHECK(stage.asked(0).empty());
}

}  // namespace
}  // namespace stagecraft
