#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Holds a trainer of two stages, one of which can be made to fail.
struct FailingRun {
  explicit FailingRun(int stages = 2, TrainerOptions options = {})
      : program(make_program({.stages = stages})),
        cluster(Cluster::local(stages)),
        trainer(cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2}, [&] {
          options.before_instruction = hook_of(failing);
          return options;
        }()) {}

  Program program;
  std::shared_ptr<FailingRank> failing = std::make_shared<FailingRank>();
  Cluster cluster;
  Trainer trainer;
};

TEST_CASE("a worker that throws fails the step with its place and cause, and no weight changes",
          "[integration][failure]") {
  FailingRun f(4);
  (void)step_of(f.trainer, 0).get();
  const StateDict before = f.trainer.state_dict();

  const RankList& list = f.trainer.plan().list_of(Rank(2));
  const auto backward = std::ranges::find_if(list.instructions, [](const Instruction& i) {
    return i.task == Task{CellKind::Backward, StageId(2), Microbatch(1)} && i.op == Op::Run;
  });
  REQUIRE(backward != list.instructions.end());
  f.failing->fail_at({Rank(2), backward->id});
  const Error error = error_of(step_of(f.trainer, 1));
  CHECK(error.code() == Errc::WorkerFailed);
  CHECK(error.message() == "injected failure");
  CHECK(error.context().rank == Rank(2));
  CHECK(error.context().stage == StageId(2));
  CHECK(error.context().microbatch == Microbatch(1));
  CHECK(error.context().step == Step(1));
  CHECK(error.context().task == "2B1");
  CHECK(f.trainer.steps() == 1);
  CHECK(same_bits(f.trainer.state_dict(), before));

  CHECK(step_of(f.trainer, 1).get().step == 2);
  CHECK_FALSE(same_bits(f.trainer.state_dict(), before));
}

TEST_CASE("an operator that throws on a worker fails the step, and the next step works",
          "[integration][failure]") {
  FailingRun f;
  const Data bad = data_with_bad_token();
  const Error error = error_of(f.trainer.step(bad.inputs, bad.labels));
  CHECK(error.code() == Errc::DeviceFailed);
  CHECK(error.context().rank == Rank(0));
  CHECK(error.context().stage == StageId(0));
  CHECK(error.context().microbatch == Microbatch(kMicrobatches - 1));
  CHECK_THAT(error.message(), ContainsSubstring("index"));
  CHECK(step_of(f.trainer, 0).get().step == 1);
}

TEST_CASE("settings of an optimizer that cannot train are refused", "[integration][failure]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  CHECK(thrown_by([&] {
          Trainer trainer(
              cluster, program, make_schedule("gpipe", program), AdamW{.lr = std::nan("")});
        }) == Errc::UsageArgument);
  CHECK(thrown_by([&] { Reference reference(program, AdamW{.beta1 = 1.5}, {}); }) ==
        Errc::UsageArgument);
}

TEST_CASE("a worker out of memory fails the step as such", "[integration][failure]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  std::atomic<bool> armed = true;
  Trainer trainer(cluster,
                  program,
                  make_schedule("gpipe", program),
                  AdamW{},
                  {.before_instruction = [&](Rank rank, const Instruction&) {
                    if (rank == Rank(1) && armed.exchange(false)) {
                      throw std::bad_alloc();
                    }
                  }});
  CHECK(error_of(step_of(trainer, 0)).code() == Errc::DeviceOutOfMemory);
  CHECK(step_of(trainer, 0).get().step == 1);
}

TEST_CASE("a step under way behind a failed one is done as if nothing had been",
          "[integration][failure]") {
  FailingRun f;
  f.failing->fail_at(first(f.trainer.plan(), Rank(1), Op::Run));
  const StepFuture failing = step_of(f.trainer, 0);
  const StepFuture next = step_of(f.trainer, 0);
  CHECK(error_of(failing).code() == Errc::WorkerFailed);
  FailingRun undisturbed;
  CHECK(next.get().losses == step_of(undisturbed.trainer, 0).get().losses);
  CHECK(same_bits(f.trainer.state_dict(), undisturbed.trainer.state_dict()));
}

TEST_CASE("200 failures anywhere before the commit change no bit of the training",
          "[integration][failure]") {
  FailingRun f(4);
  FailingRun undisturbed(4);
  std::mt19937 random(20240607);
  for (int i = 0; i < 200; ++i) {
    const Rank rank(static_cast<int>(random() % 4));
    const auto& instructions = f.trainer.plan().list_of(rank).instructions;
    const auto vote = std::ranges::find(instructions, Op::Vote, &Instruction::op);
    const auto upto = static_cast<std::uint32_t>(vote - instructions.begin()) + 1;
    const InstructionId where = instructions[random() % upto].id;
    CAPTURE(i, rank.value, where.value);
    f.failing->fail_at({rank, where});
    const Error error = error_of(step_of(f.trainer, i));
    CHECK(error.code() == Errc::WorkerFailed);
    CHECK(error.context().rank == rank);
    if (i % 20 == 0) {
      CHECK(same_bits(f.trainer.state_dict(), undisturbed.trainer.state_dict()));
      CHECK(step_of(f.trainer, i).get().losses == step_of(undisturbed.trainer, i).get().losses);
    }
  }
  CHECK(f.trainer.steps() == 10);
  CHECK(same_bits(f.trainer.state_dict(), undisturbed.trainer.state_dict()));
}

TEST_CASE("a rank that fails inside its update loses the weights until a checkpoint is loaded",
          "[integration][failure]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  FailingRun f;
  (void)step_of(f.trainer, 0).get();
  f.trainer.save(path);
  const StateDict saved = f.trainer.state_dict();

  f.failing->fail_at(first(f.trainer.plan(), Rank(1), Op::Update));
  const Error error = error_of(step_of(f.trainer, 1));
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(1));
  const Error refused = error_of(step_of(f.trainer, 1));
  CHECK(refused.code() == Errc::WorkerLost);
  CHECK(refused.context().rank == Rank(1));  // whose loss is the reason
  try {
    (void)f.trainer.state_dict();
    FAIL("undefined weights are read");
  } catch (const Error& unread) {
    CHECK(unread.code() == Errc::WorkerLost);
    CHECK(unread.context().rank == Rank(1));
  }
  CHECK(thrown_by([&] { f.trainer.save(path); }) == Errc::WorkerLost);

  f.trainer.load(path);
  CHECK(f.trainer.steps() == 1);
  CHECK(same_bits(f.trainer.state_dict(), saved));
  CHECK(step_of(f.trainer, 1).get().step == 2);
}

TEST_CASE("a rank that never answers is named when the step's deadline has passed",
          "[integration][failure]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  FailingRun f(2, {.step_deadline = std::chrono::seconds(6)});
  f.trainer.save(path);
  f.failing->stop_at(first(f.trainer.plan(), Rank(1), Op::Run));
  const Error error = error_of(step_of(f.trainer, 0));
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.context().rank == Rank(1));
  CHECK(error.context().stage == StageId(1));
  CHECK_THAT(error.message(),
             ContainsSubstring("rank 0 waits for 1B0 from rank 1, which has been in"));
  CHECK(error_of(step_of(f.trainer, 0)).code() == Errc::WorkerLost);

  f.failing->let_go();
  f.trainer.load(path);
  CHECK(step_of(f.trainer, 0).get().step == 1);
}

TEST_CASE("whom ranks wait for in their vote is told while they wait", "[integration][failure]") {
  FailingRun f(4);
  f.failing->stop_at(first(f.trainer.plan(), Rank(2), Op::Vote));
  const StepFuture step = step_of(f.trainer, 0);
  f.failing->wait_until_stopped();
  CHECK(eventually([&] {
    const std::vector<RankStatus> ranks = f.trainer.status();
    return std::ranges::count(ranks, std::vector<Rank>{Rank(2)}, &RankStatus::waiting_for) == 3;
  }));
  f.failing->let_go();
  CHECK(step.get().step == 1);
}

TEST_CASE("a rank that hangs while the others vote is named, with who waits for it",
          "[integration][failure]") {
  FailingRun f(4, {.step_deadline = std::chrono::seconds(6)});
  f.failing->stop_at(first(f.trainer.plan(), Rank(2), Op::Vote));
  const Error error = error_of(step_of(f.trainer, 0));
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.context().rank == Rank(2));
  CHECK_THAT(error.message(),
             ContainsSubstring("waits for the vote of rank 2, which has been in") &&
                 ContainsSubstring("and waits for nobody; not done either: rank 1, 3"));
  f.failing->let_go();
}

TEST_CASE("a status names the instruction of the plan that runs, be it an evaluation's",
          "[integration][failure]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  std::promise<std::string> reached;
  std::promise<void> go;
  std::atomic<bool> armed = true;
  Trainer trainer(cluster,
                  program,
                  make_schedule("gpipe", program),
                  AdamW{},
                  {.before_instruction = [&](Rank rank, const Instruction& i) {
                    if (rank == Rank(1) && i.op == Op::Run && i.task.microbatch == Microbatch(3) &&
                        armed.exchange(false)) {
                      reached.set_value(to_string(i));
                      go.get_future().wait();
                    }
                  }});
  const Data batch = data(0);
  std::thread evaluating([&] { (void)trainer.evaluate(batch.inputs, batch.labels); });
  const std::string instruction = reached.get_future().get();
  const RankStatus status = trainer.status()[1];
  go.set_value();
  evaluating.join();
  CHECK(status.answers);
  CHECK(status.instruction == instruction);
}

TEST_CASE("however short a step's deadline is, state has its own", "[integration][failure]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  FailingRun f(2, {.step_deadline = std::chrono::milliseconds(1)});
  f.trainer.save(path);
  const StateDict before = f.trainer.state_dict();
  f.trainer.load(path);
  CHECK(same_bits(f.trainer.state_dict(), before));
}

TEST_CASE("a loss that is not finite stops the step before any weight changes",
          "[integration][failure]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, make_schedule("1f1b", program), Sgd{.lr = 1e30});
  (void)step_of(trainer, 0).get();
  const StateDict before = trainer.state_dict();
  const Error error = error_of(step_of(trainer, 1));
  CHECK(error.code() == Errc::NonFinite);
  CHECK(error.context().stage == StageId(1));
  CHECK(trainer.steps() == 1);
  CHECK(same_bits(trainer.state_dict(), before));
}

TEST_CASE("a gradient that is not finite stops the step before any weight changes",
          "[integration][failure]") {
  const int stages = GENERATE(1, 2, 4);
  const Program program = make_program({.stages = stages, .steep = true});
  Cluster cluster = Cluster::local(stages);
  Trainer trainer(cluster, program, make_schedule("gpipe", program), AdamW{});
  const StateDict before = trainer.state_dict();
  const Error error = error_of(step_of(trainer, 0));
  CHECK(error.code() == Errc::NonFinite);
  CHECK(error.message().find("the gradient of ") != std::string::npos);
  CHECK(error.context().stage.has_value());
  CHECK(trainer.steps() == 0);
  CHECK(same_bits(trainer.state_dict(), before));
  const Data batch = data(0);
  CHECK(std::isfinite(trainer.evaluate(batch.inputs, batch.labels)));
}

TEST_CASE("shutting down cancels the steps under way", "[integration][failure]") {
  std::vector<StepFuture> steps;
  {
    FailingRun f;
    f.failing->stop_at(first(f.trainer.plan(), Rank(0), Op::Run));
    steps.push_back(step_of(f.trainer, 0));
    steps.push_back(step_of(f.trainer, 1));
    f.failing->wait_until_stopped();
    // The steps become Cancelled first; only then may the rank continue and end.
    std::thread([step = steps[1], failing = f.failing] {
      (void)step.wait_until(patience());
      failing->let_go();
    }).detach();
  }
  CHECK(error_of(steps[0]).code() == Errc::Cancelled);
  CHECK(error_of(steps[1]).code() == Errc::Cancelled);
}

TEST_CASE("shutting down leaves a rank behind that does not end", "[integration][failure]") {
  std::shared_ptr<FailingRank> failing;
  StepFuture step;
  {
    FailingRun f(2, {.end_deadline = std::chrono::milliseconds(100)});
    failing = f.failing;
    failing->stop_at(first(f.trainer.plan(), Rank(1), Op::Run));
    step = step_of(f.trainer, 0);
    failing->wait_until_stopped();
  }
  CHECK(error_of(step).code() == Errc::Cancelled);
  failing->let_go();
}

}  // namespace
}  // namespace stagecraft::tests
