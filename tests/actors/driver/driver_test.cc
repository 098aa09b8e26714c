/// Tests the driver against workers that follow a script: no model, real transports, real agents.
#include "stagecraft/actors/driver/driver.h"

#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/actors/messages/timeline_tensor.h"
#include "stagecraft/actors/worker/stage_worker.h"
#include "stagecraft/base/manual_clock.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/actors/driver/wait_plan.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

enum class Act {
  Commit,    ///< answers well
  Fail,      ///< answers with an error of its own
  Wait,      ///< waits for a tensor that never comes, as a peer of a failed rank does
  Lose,      ///< fails inside its update
  Ignore,    ///< ignores aborts: waits for the test to let it go
  Hold,      ///< answers well once the test lets it go
  Peer,      ///< waits for its first Recv from a peer, which never completes
  Cut,       ///< answers that its connection to a peer is gone
  Die,       ///< the actor ends
  RunOut,    ///< likewise, and says that memory ran out
  DieLater,  ///< the actor ends when the test says so
  Record,    ///< answers well and announces a timeline of two instructions, which the test sends
  Vanish,    ///< does so, and the actor ends
};

/// Holds what each rank does in each submission (Commit by default), and what it was asked.
struct Script {
  std::mutex mutex;  // shared by plan threads and the test
  std::map<std::pair<int, std::int64_t>, Act> acts;
  std::map<int, std::vector<StepOrder>> asked;
  Promise<std::monostate> let_go, let_die;
  std::map<int, int> questions;  ///< questions to agents, by rank

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

/// Does at a Recv what the executor does: shows its instruction and the rank it waits for.
StepReport wait_for_peer(const StepOrder& m, WorkerContext& context, const Plan& plan) {
  const auto& list = plan.list_of(context.rank).instructions;
  const auto receive = std::ranges::find(list, Op::Recv, &Instruction::op);
  const Rank peer = plan.ranks[context.rank.index()].peers[receive->peer.index()];
  context.progress->begin(static_cast<std::size_t>(receive - list.begin()));
  const auto never = context.transport->receive(
      peer, {.epoch = m.epoch, .submission = m.submission, .edge = receive->edge});
  (void)context.progress->waits.wait({{peer, never}}, patience());
  return failed(context.rank, m, *failure_of(never));
}

StepReport play(Act act, const StepOrder& m, WorkerContext& context, Script& script) {
  const Rank rank = context.rank;
  switch (act) {
    case Act::Fail:
      return failed(rank, m, Errc::WorkerFailed);
    case Act::Cut:
      return failed(rank, m, Errc::TransportClosed);
    case Act::Lose:
      return failed(rank, m, Errc::WorkerLost);
    case Act::Ignore:
      (void)script.let_go.future().wait_until(patience());
      return failed(rank, m, Errc::WorkerAborted);
    case Act::Peer:
      return wait_for_peer(m, context, wait_plan());
    case Act::Wait: {
      const auto never = context.transport->receive(
          kDriver, {.epoch = m.epoch, .submission = m.submission, .edge = EdgeId(99)});
      return failed(rank, m, *failure_of(never));
    }
    case Act::Record:
    case Act::Vanish:
      return {.rank = rank,
              .submission = m.submission,
              .committed = m.program == kTraining,
              .timeline_rows = 2};
    case Act::DieLater:
      (void)script.let_die.future().wait_until(patience());
      throw std::runtime_error("this worker ends here");
    case Act::Die:
      throw std::runtime_error("this worker ends here");
    case Act::RunOut:
      throw std::bad_alloc();
    case Act::Hold:
      (void)script.let_go.future().wait_until(patience());
      [[fallthrough]];
    default:
      return {.rank = rank,
              .submission = m.submission,
              .committed = m.program == kTraining,
              .losses = rank == Rank(0) ? std::vector<MicrobatchLoss>{{Microbatch(1), 0.5},
                                                                      {Microbatch(0), 1.5}}
                                        : std::vector<MicrobatchLoss>{},
              .gradient_norm = 2.0};
  }
}

PlanActor::behavior_type scripted(PlanActor::pointer self,
                                  const std::shared_ptr<WorkerContext>& context,
                                  const std::shared_ptr<Script>& script) {
  const Rank rank = context->rank;
  self->set_exception_handler([](std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      return caf::make_error(caf::sec::runtime_error, std::string("memory ran out"));
    } catch (...) {
      return caf::sec::runtime_error;
    }
  });
  return {[=](const LoadPlan&) { return Ready{.rank = rank}; },
          [=](const StepOrder& m) {
            const Act act = script->next(rank, m);
            if (act == Act::Vanish) {
              self->quit(caf::exit_reason::kill);
            }
            return play(act, m, *context, *script);
          },
          [=](const SendState&) { return StateListing{.rank = rank}; },
          [=](const TakeState&) { return StateTaken{.rank = rank}; },
          [=](const LoadShape&) { return ShapeLoaded{.rank = rank}; }};
}

using Promises = std::vector<caf::response_promise>;

/// Counts the questions it gets. A mute agent does what it is told and never answers.
AgentActor::behavior_type scripted_agent(AgentActor::stateful_pointer<Promises> self,
                                         const std::shared_ptr<WorkerContext>& context,
                                         const std::shared_ptr<Script>& script,
                                         bool mute) {
  return {[context](const Abort& m) {
            context->transport->advance(m.plan, m.epoch, to_error(m.reason));
          },
          [=](const Status&) {
            auto answer = self->make_response_promise<StatusReply>();
            if (mute) {
              self->state.push_back(answer);
            } else {
              answer.deliver(StatusReply{.rank = context->rank,
                                         .instruction = context->progress->instruction,
                                         .waiting_for = context->progress->waits.missing()});
            }
            const std::scoped_lock lock(script->mutex);
            ++script->questions[context->rank.value];
            return answer;
          },
          [context](const EndWorker&) { return WorkerEnded{.rank = context->rank}; }};
}

/// The deadline of every step. No test waits for it: the driver has a clock of the test.
constexpr std::chrono::minutes kStepDeadline{5};

struct StageOptions {
  std::set<int> mute = {};  ///< ranks whose agents do not say what they do
  int ranks = 2;
  std::set<int> told_late = {};  ///< ranks of whose ends the cause is not known at once
};

/// Runs a driver with scripted workers and a clock that the test advances.
class Stage {
 public:
  static constexpr int kRanks = 2;  ///< by default

  explicit Stage(const StageOptions& options = {}) : network(options.ranks) {
    for (int r = 0; r < options.ranks; ++r) {
      auto context = std::make_shared<WorkerContext>();
      context->rank = Rank(r);
      context->transport = network.endpoint(Rank(r));
      contexts.push_back(context);
      const PlanActor plan_thread = host.system().spawn<caf::detached>(scripted, context, script);
      setup.members.push_back(
          {plan_thread,
           host.system().spawn(scripted_agent, context, script, options.mute.contains(r))});
      all.push_back(caf::actor_cast<caf::actor>(setup.members.back().plan_thread));
      all.push_back(caf::actor_cast<caf::actor>(setup.members.back().agent));
    }
    plan = std::make_shared<Plan>(wait_plan());
    plan->feeds = {{.to = Rank(0), .edge = EdgeId(0), .microbatch = Microbatch(0)}};
    setup.transport = network.endpoint(kDriver);
    setup.ledger = ledger;
    setup.clock_offsets = {0, 100, 0};
    setup.options.learning_rate = {.kind = LearningRate::Kind::Constant, .warmup = 4};
    setup.base_learning_rate = 1.0;
    setup.options.step_deadline = kStepDeadline;
    causes.resize(static_cast<std::size_t>(options.ranks));
    for (int r = 0; r < options.ranks; ++r) {
      setup.causes.push_back(causes[Rank(r).index()].future());
      if (!options.told_late.contains(r)) {
        tell_cause(r);
      }
    }
    setup.epoch = epoch;
    setup.clock = clock;
    spawn();
  }
  ~Stage() {
    ledger->close();
    (void)script->let_go.set_value({});
    (void)script->let_die.set_value({});
    CHECK(host.end(all, kTestPatience) == 0);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void spawn() {
    driver = spawn_driver(host, setup);
    all.insert(all.begin(), caf::actor_cast<caf::actor>(driver));  // ends first, as in a crew
  }

  /// Tells the driver why the rank's worker ends, as a fleet does.
  void tell_cause(int rank) {
    (void)causes[Rank(rank).index()].set_value("process 4711 of " + peer_name(Rank(rank)) +
                                               " died");
  }

  /// Lets time pass, and returns when the driver has looked at the clock and has handled every
  /// message that it got before.
  void pass(Clock::Time::duration span) {
    clock->advance(span);
    caf::scoped_actor self(host.system());
    self->request(driver, std::chrono::minutes(1), caf::tick_atom::value)
        .receive([] {}, [](const caf::error&) { FAIL_CHECK("the driver handles no message"); });
  }

  /// Waits until every rank has got its order of the step.
  void wait_for_orders(std::size_t steps = 1) {
    REQUIRE(eventually([&] {
      return asked(0).size() == steps &&
             asked(static_cast<int>(contexts.size()) - 1).size() == steps;
    }));
  }

  void end_driver() { CHECK(host.end({caf::actor_cast<caf::actor>(driver)}, kTestPatience) == 0); }

  [[nodiscard]] bool waits(int rank) const {
    return !contexts[static_cast<std::size_t>(rank)]->progress->waits.missing().empty();
  }

  int questions(int rank) {
    const std::scoped_lock lock(script->mutex);
    return script->questions[rank];
  }

  void expect(int rank, std::int64_t submission, Act act) {
    const std::scoped_lock lock(script->mutex);
    script->acts[{rank, submission}] = act;
  }

  Future<StepResult> submit(bool training = true) {
    return submit(
        {.program = training ? kTraining : 1, .plan = plan, .inputs = {{number(7)}}, .labels = {}});
  }

  Future<StepResult> submit(StepInput input) {
    input.plan = plan;
    EnteredStep entered = ledger->enter(std::move(input), 100);
    caf::anon_send(driver, Submit{entered.submission});
    return entered.result;
  }

  /// Sets what the rank's agent says from now on.
  void seems_busy(int rank, int instruction) {
    contexts[static_cast<std::size_t>(rank)]->progress->instruction = instruction;
  }

  std::vector<StepOrder> asked(int rank) {
    const std::scoped_lock lock(script->mutex);
    return script->asked[rank];
  }

  ActorHost& host = ActorHost::of_this_process();
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::vector<Promise<std::string>> causes;  ///< by rank
  const InprocNetwork network;
  const std::shared_ptr<StepLedger> ledger = std::make_shared<StepLedger>();
  std::shared_ptr<Plan> plan;
  const std::shared_ptr<Script> script = std::make_shared<Script>();
  std::vector<std::shared_ptr<WorkerContext>> contexts;
  const std::shared_ptr<std::atomic<std::int64_t>> epoch =
      std::make_shared<std::atomic<std::int64_t>>(0);
  std::vector<caf::actor> all;
  DriverSetup setup;
  DriverActor driver;
};

TEST_CASE("a batch that ranks read is named in the order, and nothing is sent",
          "[actors][driver]") {
  Stage stage;
  const LocalBatch batch{.source = "text", .argument = "file", .number = 7};
  const auto waiting = [&] { return stage.contexts[0]->transport->bytes_waiting(); };
  const Future<StepResult> read = stage.submit({.local = batch});
  REQUIRE(read.wait_until(patience()));
  CHECK(waiting() == 0);
  const Future<StepResult> sent = stage.submit();
  REQUIRE(sent.wait_until(patience()));
  CHECK(waiting() > 0);  // this rank takes no messages
  CHECK(stage.asked(0).at(0).local == batch);
  CHECK(stage.asked(0).at(1).local == LocalBatch());
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
    CHECK(asked[0].program == kTraining);
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
  // Both ranks have answered, and the second step has not begun.
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
  CHECK(result.timelines[1][0].start == 120);  // in time of the driver's clock
  REQUIRE(next.wait_until(patience()));
  CHECK(next.get().timelines[0].empty());
}

TEST_CASE("a step whose timelines do not come by its deadline is done without them (DR-3)",
          "[actors][driver]") {
  Stage stage;
  stage.expect(1, 0, Act::Record);
  const Future<StepResult> step = stage.submit();
  stage.wait_for_orders();
  stage.pass(kStepDeadline - std::chrono::milliseconds(1));
  CHECK_FALSE(step.ready());
  stage.pass(std::chrono::milliseconds(1));
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
  CHECK(steps[1].get().step == 1);  // an evaluation does not count as an update
  CHECK(steps[2].get().step == 2);
  const std::vector<StepOrder> asked = stage.asked(1);
  REQUIRE(asked.size() == 3);
  CHECK(asked[1].program == 1);
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

TEST_CASE("a step that fails begins an epoch, also if all ranks have answered by then (DR-2)",
          "[actors][driver]") {
  Stage stage;
  stage.expect(1, 0, Act::Fail);
  (void)error_of(stage.submit(/*training=*/false));
  REQUIRE(stage.submit(/*training=*/false).wait_until(patience()));
  REQUIRE(stage.asked(0).size() == 2);
  CHECK(stage.asked(0)[1].epoch == Epoch(1));
}

TEST_CASE("a tensor of an aborted step is refused", "[actors][driver]") {
  Stage stage;
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Fail);
  (void)error_of(stage.submit());
  REQUIRE(
      stage.submit().wait_until(patience()));  // its first message follows every agent's advance
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
  const Error failed = error_of(stage.submit());
  CHECK((failed.code() == Errc::WorkerLost || failed.advice() == "trainer.load(file)"));
  const Error refused = error_of(stage.submit());
  CHECK(refused.code() == Errc::WorkerLost);
  CHECK(refused.cause() != nullptr);
  CHECK(stage.asked(0).size() == 1);
  stage.ledger->resume(9);
  const Future<StepResult> again = stage.submit();
  REQUIRE(again.wait_until(patience()));
  CHECK(again.get().step == 10);
}

TEST_CASE("a worker that ends fails the step with its cause and who waits for it, and later ones",
          "[actors][driver]") {
  Stage stage({.ranks = 3});
  stage.expect(0, 0, Act::Peer);
  stage.expect(1, 0, Act::Peer);
  stage.expect(2, 0, Act::DieLater);
  const Future<StepResult> step = stage.submit();
  const Future<StepResult> queued = stage.submit();
  // Ranks 0 and 1 wait for each other; neither waits for rank 2.
  REQUIRE(eventually([&] { return stage.waits(0) && stage.waits(1); }));
  (void)stage.script->let_die.set_value({});
  const Error error = error_of(step);
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(2));
  CHECK(error.context().step == Step(0));
  CHECK_THAT(error.what(),
             ContainsSubstring("rank 2 is lost: process 4711 of rank 2 died; it is not known to "
                               "have begun a task of this step; nobody is known to wait for it "
                               "yet; not done either: rank 0, 1; to continue: "
                               "cluster.replace(Rank(2)), then trainer.load(file)"));
  for (const Future<StepResult>& later : {queued, stage.submit()}) {
    const Error refused = error_of(later);
    CHECK(refused.code() == Errc::WorkerLost);
    CHECK(refused.context().rank == Rank(2));
    CHECK_THAT(refused.what(),
               ContainsSubstring(
                   "no step is run: rank 2 is lost: process 4711 of rank 2 died; to continue: "
                   "cluster.replace(Rank(2)), then trainer.load(file)"));
  }
  CHECK(stage.asked(0).size() == 1);
  CHECK(stage.ledger->committed() == 0);
}

TEST_CASE(
    "while a step runs long its ranks are asked, so that the last task of a lost one is known",
    "[actors][driver]") {
  Stage stage({.ranks = 3});
  stage.expect(0, 0, Act::Peer);
  stage.expect(1, 0, Act::DieLater);
  stage.expect(2, 0, Act::Ignore);  // ignores the abort, so no rank waits for it (DR-6)
  stage.seems_busy(1, 4);
  const Future<StepResult> step = stage.submit();
  stage.wait_for_orders();
  REQUIRE(eventually([&] { return stage.waits(0); }));
  stage.pass(kLookInterval - std::chrono::milliseconds(1));
  CHECK(stage.questions(1) == 0);
  for (int look = 1; look <= 2; ++look) {
    stage.pass(kLookInterval);
    REQUIRE(eventually([&] { return stage.questions(1) == look; }));
    stage.pass(std::chrono::milliseconds(0));  // the driver has got the answer
  }
  (void)stage.script->let_die.set_value({});
  const Error error = error_of(step);
  CHECK(error.context().rank == Rank(1));
  CHECK(error.context().task == "1B3");
  CHECK_THAT(error.what(),
             ContainsSubstring("the last task that it is known to have begun is 1B3; rank 0 waits "
                               "for 1B3 from rank 1; not done either: rank 2; to continue"));
  CHECK(error_of(stage.submit()).code() == Errc::WorkerLost);  // with rank 2 still inside the step
}

TEST_CASE(
    "an agent that is silent holds up what is told of a lost worker for no longer than its "
    "limit",
    "[actors][driver]") {
  Stage stage({.mute = {0}});
  stage.expect(0, 0, Act::Peer);
  stage.expect(1, 0, Act::Die);
  const Future<StepResult> step = stage.submit();
  REQUIRE(eventually([&] { return stage.questions(0) == 1; }));
  stage.pass(kLossAskLimit - std::chrono::milliseconds(1));
  CHECK_FALSE(step.ready());
  stage.pass(std::chrono::milliseconds(1));
  CHECK_THAT(error_of(step).message(),
             ContainsSubstring("rank 1 is lost") && ContainsSubstring("; silent: rank 0"));
}

TEST_CASE("a transfer that failed because its peer is gone is not the cause (SR-2)",
          "[actors][driver]") {
  Stage stage({.mute = {1}});
  stage.expect(0, 0, Act::Cut);
  stage.expect(1, 0, Act::DieLater);
  const Future<StepResult> step = stage.submit();
  REQUIRE(eventually([&] { return stage.questions(1) > 0; }));
  (void)stage.script->let_die.set_value({});
  const Error error = error_of(step);
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(1));
}

TEST_CASE("a transfer that failed for another reason is told when the ranks were asked in vain",
          "[actors][driver]") {
  Stage stage;
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Cut);
  CHECK(error_of(stage.submit()).code() == Errc::TransportClosed);
  const Future<StepResult> next = stage.submit();
  REQUIRE(next.wait_until(patience()));
  CHECK(next.get().step == 1);
}

TEST_CASE("a worker lost between two steps fails those that follow", "[actors][driver]") {
  Stage stage;
  REQUIRE(stage.submit().wait_until(patience()));
  caf::anon_send_exit(stage.setup.members[1].agent, caf::exit_reason::kill);
  REQUIRE(eventually([&] { return stage.ledger->lost().has_value(); }));
  CHECK_THAT(stage.ledger->lost()->message(), ContainsSubstring("process 4711 of rank 1 died"));
  stage.ledger->resume(1);  // weights alone are not enough
  const Error refused = error_of(stage.submit());
  CHECK(refused.code() == Errc::WorkerLost);
  CHECK(refused.context().rank == Rank(1));
}

TEST_CASE("while a cause is not known the driver handles other messages, and then names it (DR-8)",
          "[actors][driver]") {
  Stage stage({.ranks = 3, .told_late = {1}});
  stage.expect(0, 0, Act::Peer);
  stage.expect(1, 0, Act::Die);
  stage.expect(2, 0, Act::Hold);
  const Future<StepResult> step = stage.submit();
  const Future<StepResult> queued = stage.submit();
  REQUIRE(eventually([&] { return stage.questions(0) == 1 && stage.questions(2) == 1; }));
  (void)stage.script->let_go.set_value({});                // rank 2 answers its order
  stage.pass(kCauseLimit - std::chrono::milliseconds(1));  // the driver takes a message
  CHECK_FALSE(step.ready());
  CHECK_FALSE(queued.ready());
  stage.tell_cause(1);
  const Error error = error_of(step);
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(1));
  CHECK_THAT(error.message(), ContainsSubstring("rank 1 is lost: process 4711 of rank 1 died;"));
  CHECK_THAT(error_of(queued).message(),
             ContainsSubstring("no step is run: rank 1 is lost: process 4711 of rank 1 died"));
}

TEST_CASE("a cause that does not come is waited for until its limit (DR-8)", "[actors][driver]") {
  Stage stage({.told_late = {1}});
  stage.expect(0, 0, Act::Peer);
  stage.expect(1, 0, Act::Die);
  const Future<StepResult> step = stage.submit();
  REQUIRE(eventually([&] { return stage.questions(0) == 1; }));
  stage.pass(kCauseLimit - std::chrono::milliseconds(1));
  CHECK_FALSE(step.ready());
  stage.pass(std::chrono::milliseconds(1));
  CHECK_THAT(error_of(step).message(), ContainsSubstring("rank 1 is lost: its worker has ended;"));
  stage.tell_cause(1);
  stage.pass(std::chrono::milliseconds(0));
  CHECK(error_of(stage.submit()).code() == Errc::WorkerLost);
}

TEST_CASE("a worker that fails by itself is lost for that reason (DR-8)", "[actors][driver]") {
  Stage stage({.told_late = {1}});
  stage.expect(0, 0, Act::Peer);
  stage.expect(1, 0, Act::RunOut);
  const Future<StepResult> step = stage.submit();
  REQUIRE(step.wait_until(patience()));
  CHECK_THAT(error_of(step).message(),
             ContainsSubstring("rank 1 is lost: its worker has failed: memory ran out;"));
}

TEST_CASE("a step that follows a loss waits until the loss is reported with its cause (DR-8)",
          "[actors][driver]") {
  Stage stage({.told_late = {1}});
  stage.expect(1, 0, Act::Vanish);  // its timeline never comes, so the loss ends the step
  const Future<StepResult> step = stage.submit();
  REQUIRE(step.wait_until(patience()));
  CHECK(step.get().step == 1);
  const bool in_time = GENERATE(true, false);
  CAPTURE(in_time);
  const Future<StepResult> next = stage.submit();
  stage.pass(kCauseLimit - std::chrono::milliseconds(1));
  CHECK_FALSE(stage.ledger->lost());
  CHECK_FALSE(next.ready());
  if (in_time) {
    stage.tell_cause(1);
  } else {
    stage.pass(std::chrono::milliseconds(1));
  }
  const Error refused = error_of(next);
  CHECK(refused.code() == Errc::WorkerLost);
  CHECK(refused.message() ==
        std::string("no step is run: rank 1 is lost: ") +
            (in_time ? "process 4711 of rank 1 died" : "its worker has ended"));
  CHECK(refused.cause() == nullptr);  // it would say the same
  CHECK(stage.asked(0).size() == 1);
}

TEST_CASE("a step that follows several losses names the cause of each (DR-8)", "[actors][driver]") {
  Stage stage({.ranks = 3, .told_late = {1, 2}});
  stage.expect(1, 0, Act::Vanish);
  stage.expect(2, 0, Act::Vanish);
  REQUIRE(stage.submit().wait_until(patience()));
  const Future<StepResult> next = stage.submit();
  stage.tell_cause(2);
  stage.tell_cause(1);
  const std::string refused = error_of(next).message();
  CHECK_THAT(refused,
             ContainsSubstring("rank 1 is lost: process 4711 of rank 1 died") &&
                 ContainsSubstring("rank 2 is lost: process 4711 of rank 2 died"));
}

TEST_CASE("a worker that ends during an abort is named when its cause is known (DR-8)",
          "[actors][driver]") {
  Stage stage({.ranks = 3, .told_late = {2}});
  stage.expect(0, 0, Act::Fail);
  stage.expect(1, 0, Act::Wait);
  stage.expect(2, 0, Act::DieLater);
  const Future<StepResult> step = stage.submit();
  REQUIRE(eventually([&] { return *stage.epoch == 1; }));
  (void)stage.script->let_die.set_value({});
  stage.pass(kCauseLimit - std::chrono::milliseconds(1));
  CHECK_FALSE(step.ready());
  stage.tell_cause(2);
  CHECK(error_of(step).code() == Errc::WorkerFailed);  // what rank 0 said led to the abort
  const Error refused = error_of(stage.submit());
  CHECK(refused.code() == Errc::WorkerLost);
  CHECK(refused.message() == "no step is run: rank 2 is lost: process 4711 of rank 2 died");
}

TEST_CASE("a driver that ends fails what it was given, and another takes over behind it (DR-7)",
          "[actors][driver]") {
  Stage stage;
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Fail);
  CHECK(error_of(stage.submit()).code() == Errc::WorkerFailed);
  CHECK(*stage.epoch == 1);
  stage.expect(0, 1, Act::Wait);
  stage.expect(1, 1, Act::Ignore);
  const Future<StepResult> running = stage.submit();
  const Future<StepResult> queued = stage.submit();
  REQUIRE(eventually([&] { return stage.asked(0).size() == 2 && stage.asked(1).size() == 2; }));
  stage.end_driver();
  CHECK(failure_of(running) == Errc::ClusterClosed);
  CHECK(failure_of(queued) == Errc::ClusterClosed);

  stage.setup.first_epoch = Epoch(*stage.epoch + 1);
  stage.spawn();
  const Future<StepResult> step = stage.submit();  // rank 0 is told to give up the step before
  (void)stage.script->let_go.set_value({});
  REQUIRE(step.wait_until(patience()));
  CHECK(step.get().step == 1);
  CHECK(stage.asked(0).back().epoch == Epoch(2));
  CHECK(*stage.epoch == 2);
}

TEST_CASE("a rank that never answers fails the step after its deadline and is named",
          "[actors][driver]") {
  Stage stage;
  stage.expect(1, 0, Act::Ignore);
  stage.seems_busy(1, 1);
  stage.expect(0, 0, Act::Peer);  // ... and waits for it, so it is not blamed
  const Future<StepResult> step = stage.submit();
  stage.wait_for_orders();
  REQUIRE(eventually([&] { return stage.waits(0); }));
  stage.pass(kStepDeadline);
  REQUIRE(eventually([&] { return *stage.epoch == 1; }));
  CHECK_FALSE(step.ready());  // the abort has the step's deadline again
  stage.pass(kStepDeadline);
  const Error error = error_of(step);
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.context().rank == Rank(1));
  CHECK_THAT(error.message(), ContainsSubstring("the step was not done within 300000 ms"));
  CHECK(error_of(stage.submit()).code() == Errc::WorkerLost);
}

TEST_CASE("an abort has a second at least, however short the deadline of a step is",
          "[actors][driver]") {
  Stage stage;
  stage.end_driver();
  stage.setup.options.step_deadline = std::chrono::milliseconds(50);
  stage.spawn();
  stage.expect(1, 0, Act::Ignore);
  const Future<StepResult> step = stage.submit();
  stage.wait_for_orders();
  stage.pass(std::chrono::milliseconds(50));
  REQUIRE(eventually([&] { return *stage.epoch == 1; }));
  stage.pass(kLeastAbortLimit - std::chrono::milliseconds(1));
  CHECK_FALSE(step.ready());
  stage.pass(std::chrono::milliseconds(1));
  CHECK(error_of(step).code() == Errc::ClusterTimeout);
}

TEST_CASE(
    "a late rank is told to abort before it is given up, however little its agent says (DR-2)",
    "[actors][driver]") {
  Stage stage({.mute = {0, 1}});
  stage.expect(0, 0, Act::Wait);
  stage.expect(1, 0, Act::Wait);
  const Future<StepResult> step = stage.submit();
  stage.wait_for_orders();
  stage.pass(kStepDeadline);
  REQUIRE(eventually([&] { return stage.questions(0) == 1 && stage.questions(1) == 1; }));
  stage.pass(kAskLimit - std::chrono::milliseconds(1));
  CHECK_FALSE(step.ready());
  stage.pass(std::chrono::milliseconds(1));
  const Error error = error_of(step);
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK_THAT(error.message(),
             ContainsSubstring("rank 0 is silent: its agent has not answered for 2.0 s") &&
                 ContainsSubstring("; silent, too: rank 1"));
  // Both answered the abort, so the weights are unchanged and the next step may run.
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
  const EnteredStep entered =
      stage.ledger->enter({.plan = stage.plan, .inputs = {{number(7)}}, .labels = {}}, 1);
  stage.ledger->close();
  caf::anon_send(stage.driver, Submit{entered.submission});
  CHECK(failure_of(entered.result) == Errc::Cancelled);
  CHECK(stage.asked(0).empty());
}

}  // namespace
}  // namespace stagecraft
