/// Tests failures of one copy of a stage: whom the error names, and what other copies give back.
#include <csignal>
#include <memory>

#include "stagecraft/tests/faults/simulated_disk.h"
#include "stagecraft/tests/integration/copies_run.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns a state of another run, in which everything differs.
Checkpoint of_other_run(Checkpoint state) {
  state.step += 5;
  for (StateTensor& tensor : state.tensors) {
    tensor.tensor = at::add(tensor.tensor, 1);
  }
  state.loop = LoopState{.batches = state.step};
  return state;
}

/// The same on threads; its ranks can be made to fail.
struct FailingCopies : CopiesRun {
  explicit FailingCopies(TrainerOptions options = {},
                         const std::shared_ptr<FailingRank>& one = std::make_shared<FailingRank>())
      : CopiesRun(Cluster::local(4),
                  [&] {
                    options.before_instruction = hook_of(one);
                    return options;
                  }()),
        failing(one) {}

  std::shared_ptr<FailingRank> failing;
};

StateDict copies_after(std::int64_t steps) {
  CopiesRun unbroken(Cluster::local(4));
  unbroken.train(steps);
  return unbroken.trainer.state_dict();
}

FailingRank::Point backward_on(const Plan& plan, Rank rank) {
  const auto& list = plan.list_of(rank).instructions;
  const auto found = std::ranges::find_if(list, [](const Instruction& i) {
    return i.op == Op::Run && i.task.kind == CellKind::Backward;
  });
  REQUIRE(found != list.end());
  return {rank, found->id};
}

// ---- who is named -------------------------------------------------------------------------------

TEST_CASE("a copy that throws in its backward is named, and no copy changes a weight",
          "[integration][replicas][failure]") {
  FailingCopies f;
  f.train(1);
  const StateDict before = f.trainer.state_dict();
  f.failing->fail_at(backward_on(f.trainer.plan(), Rank(3)));
  const Error error = error_of(step_of(f.trainer, 1));
  CHECK(error.code() == Errc::WorkerFailed);
  CHECK(error.message() == "injected failure");
  CHECK(error.context().rank == Rank(3));
  CHECK(error.context().stage == StageId(1));
  CHECK(error.context().microbatch == Microbatch(kMicrobatches / 2));  // its first of the step
  CHECK(same_bits(f.trainer.state_dict(), before));
  f.train(3);
  CHECK(same_bits(f.trainer.state_dict(), copies_after(3)));
}

TEST_CASE("a copy that hangs before its sum is named, with the sum in which others wait for it",
          "[integration][replicas][failure]") {
  FailingCopies f({.step_deadline = std::chrono::seconds(2)});
  f.train(1);
  f.failing->stop_at(first(f.trainer.plan(), Rank(0), Op::Start));
  const Error error = error_of(step_of(f.trainer, 1));
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.context().rank == Rank(0));
  CHECK_THAT(error.message(),
             ContainsSubstring("rank 0 has been in the sum of group 0 (stage 0) for ") &&
                 ContainsSubstring("rank 2 waits in the sum of group 0 (stage 0) for the gradients "
                                   "of rank 0") &&
                 ContainsSubstring("find out what holds rank 0 up"));
  f.failing->let_go();
}

TEST_CASE("while a copy is slow, the others say that they wait for it, and the bits stay",
          "[integration][replicas][failure]") {
  FailingCopies f;
  f.failing->stop_at(first(f.trainer.plan(), Rank(2), Op::Start));
  const StepFuture step = step_of(f.trainer, 0);
  f.failing->wait_until_stopped();
  CHECK(eventually([&] {
    const RankStatus status = f.trainer.status()[0];
    return status.waiting_for == std::vector{Rank(2)} &&
           status.instruction.find("all-reduce of group 0") != std::string::npos;
  }));
  f.failing->let_go();
  CHECK(step.get().step == 1);
  CHECK(same_bits(f.trainer.state_dict(), copies_after(1)));
}

// ---- what the other copies give back ------------------------------------------------------------

TEST_CASE("LV-1: recover() after a load that failed gives one of both states, wholly",
          "[integration][replicas][recovery]") {
  const TemporaryFolder folder;
  const auto disk = std::make_shared<SimulatedDisk>(folder.path());
  const DiskOfThread scope(disk);
  CopiesRun f(Cluster::local(4), {}, std::nullopt, 400);  // a file of several chunks
  f.train(1);
  const Checkpoint own = f.trainer.checkpoint();
  const StateDict before = f.trainer.state_dict();
  write_checkpoint(folder.path() + "/other.ckpt", of_other_run(own));
  f.trainer.load(folder.path() + "/other.ckpt");
  const StateDict after = f.trainer.state_dict();
  const Checkpoint other = f.trainer.checkpoint();
  int old = 0, whole = 0;
  for (std::int64_t read = 0, failed = read; failed == read; ++read) {
    f.trainer.load(own);
    disk->strike({.operation = disk->operations() + read, .kind = DiskFault::Kind::Fail});
    try {
      f.trainer.load(folder.path() + "/other.ckpt");
      continue;
    } catch (const Error&) {
      ++failed;
    }
    try {
      const bool is_other = f.trainer.recover() == other.step;
      ++(is_other ? whole : old);
      CHECK(same_bits(f.trainer.state_dict(), is_other ? after : before));
      CHECK(f.trainer.checkpoint().loop == (is_other ? other.loop : own.loop));
    } catch (const Error& error) {  // some stage has none
      CHECK(error.code() == Errc::WorkerLost);
    }
  }
  CHECK(old >= 1);    // before ranks were told
  CHECK(whole >= 1);  // when one copy of each stage had it
}

TEST_CASE("LV-1: recover() takes the state of copies, without mirrors",
          "[integration][replicas][recovery]") {
  FailingCopies f;
  f.train(2);
  SECTION("after nothing") {
    CHECK(f.trainer.recover() == 2);
  }
  SECTION("after a step that failed before its vote") {
    f.failing->fail_at(first(f.trainer.plan(), Rank(1), Op::Vote));
    CHECK(error_of(step_of(f.trainer, 2)).code() == Errc::WorkerFailed);
    CHECK(f.trainer.recover() == 2);
  }
  SECTION("after a step that failed inside the update of one copy: the other has made it") {
    f.failing->fail_at(first(f.trainer.plan(), Rank(3), Op::Update));
    const Error error = error_of(step_of(f.trainer, 2));
    CHECK(error.code() == Errc::WorkerLost);
    CHECK(thrown_by([&] { (void)f.trainer.state_dict(); }) == Errc::WorkerLost);
    CHECK_THAT(error_of(step_of(f.trainer, 2)).what(),
               ContainsSubstring("trainer.recover() or trainer.load(file)"));
    CHECK(f.trainer.recover() == 3);
    CHECK(same_bits(f.trainer.state_dict(), copies_after(3)));
  }
  f.train(5);
  CHECK(same_bits(f.trainer.state_dict(), copies_after(5)));
}

TEST_CASE("LV-1: a copy whose process is killed gets the state of another copy",
          "[integration][replicas][recovery][processes][faults]") {
  CopiesRun run(Cluster::spawn(4));
  run.train(2);
  const Rank victim = GENERATE(Rank(0), Rank(3));
  REQUIRE(kill(static_cast<pid_t>(run.cluster.workers()[victim.index()].process), SIGKILL) == 0);
  const Error error = error_of(step_of(run.trainer, 2));
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == victim);
  CHECK_THAT(error.what(), ContainsSubstring("then trainer.recover() or trainer.load(file)"));
  run.cluster.replace(victim);
  CHECK(run.trainer.recover() == 2);
  CHECK(run.trainer.steps() == 2);
  CHECK(same_bits(run.trainer.state_dict(), copies_after(2)));
  run.train(5);
  CHECK(same_bits(run.trainer.state_dict(), copies_after(5)));
}

TEST_CASE("LV-1: a rank that is lost with the keeper of its mirror gets the state of another copy",
          "[integration][replicas][recovery][processes][faults]") {
  CopiesRun run(Cluster::spawn(4), {.mirror = true});
  run.train(2);
  for (const Rank victim : {Rank(0), Rank(1)}) {
    const auto process = static_cast<pid_t>(run.cluster.workers()[victim.index()].process);
    REQUIRE(kill(process, SIGKILL) == 0);
  }
  CHECK(error_of(step_of(run.trainer, 2)).code() == Errc::WorkerLost);
  run.cluster.replace(Rank(0));
  run.cluster.replace(Rank(1));
  CHECK(run.trainer.recover() == 2);
  run.train(4);
  CHECK(same_bits(run.trainer.state_dict(), copies_after(4)));
}

TEST_CASE("if all copies of a stage are lost, recover() says so, and nothing else is tried",
          "[integration][replicas][recovery][processes][faults]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  CopiesRun run(Cluster::spawn(4));
  run.train(1);
  run.trainer.save(path);
  for (const int victim : {1, 3}) {
    REQUIRE(
        kill(static_cast<pid_t>(run.cluster.workers()[static_cast<std::size_t>(victim)].process),
             SIGKILL) == 0);
  }
  CHECK(error_of(step_of(run.trainer, 1)).code() == Errc::WorkerLost);
  run.cluster.replace(Rank(1));
  run.cluster.replace(Rank(3));
  CHECK(thrown_by([&] { (void)run.trainer.recover(); }) == Errc::WorkerLost);
  run.trainer.load(path);
  run.train(3);
  CHECK(same_bits(run.trainer.state_dict(), copies_after(3)));
}

}  // namespace
}  // namespace stagecraft::tests
