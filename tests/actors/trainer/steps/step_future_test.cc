/// Tests the handle of a step: when it completes, and what it says if it does not.
#include "stagecraft/actors/trainer/steps/step_future.h"

#include <thread>

#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

struct FutureFixture {
  explicit FutureFixture(TrainerOptions options = {})
      : trainer(cluster,
                program,
                make_schedule("1f1b", program),
                AdamW{.lr = 1e-2},
                std::move(options)) {}

  Program program = make_program();
  Cluster cluster = Cluster::local(2);
  Trainer trainer;
};

TEST_CASE("a handle that is dropped does not stop its step", "[integration][futures]") {
  FutureFixture f;
  (void)step_of(f.trainer, 0);  // dropped before it is done
  CHECK(step_of(f.trainer, 1).get().step == 2);
}

TEST_CASE("a step is read by several threads with one outcome", "[integration][futures]") {
  FutureFixture f;
  const StepFuture step = step_of(f.trainer, 0);
  std::vector<double> seen(4);
  std::vector<std::thread> readers;
  for (double& loss : seen) {
    readers.emplace_back([&loss, step] { loss = step.get().mean_loss; });
  }
  for (std::thread& reader : readers) {
    reader.join();
  }
  CHECK(seen == std::vector<double>(4, step.get().mean_loss));
}

TEST_CASE("step returns at once while fewer are under way than allowed", "[integration][futures]") {
  const auto failing = std::make_shared<FailingRank>();
  FutureFixture f({.outstanding = 3, .before_instruction = hook_of(failing)});
  failing->stop_at(first(f.trainer.plan(), Rank(0), Op::Run));
  std::vector<StepFuture> steps;
  for (int i = 0; i < 3; ++i) {
    steps.push_back(step_of(f.trainer, i));
  }
  failing->wait_until_stopped();
  CHECK_FALSE(steps[0].ready());
  CHECK(f.trainer.steps() == 0);
  failing->let_go();
  CHECK(steps[2].get().step == 3);
}

TEST_CASE("a batch may be changed as soon as step has returned", "[integration][futures]") {
  FutureFixture f, undisturbed;
  Data batch = data(0);
  const StepFuture step = f.trainer.step(batch.inputs, batch.labels);
  batch.inputs[0].tensor.zero_();
  CHECK(step.get().losses == step_of(undisturbed.trainer, 0).get().losses);
}

TEST_CASE("a result can be read when the trainer is gone", "[integration][futures]") {
  StepFuture unread;
  {
    FutureFixture f;
    unread = step_of(f.trainer, 0);
    REQUIRE(unread.wait_until(patience()));
  }
  CHECK(unread.get().losses.size() == kMicrobatches);
  CHECK(unread.get().losses == unread.get().losses);
}

TEST_CASE("a handle that names no step says so", "[integration][futures]") {
  const StepFuture none;
  CHECK_FALSE(none.valid());
  CHECK(thrown_by([&] { (void)none.get(); }) == Errc::UsageArgument);
  CHECK(thrown_by([&] { (void)none.ready(); }) == Errc::UsageArgument);
  CHECK(thrown_by([&] { (void)none.wait_until(already_over()); }) == Errc::UsageArgument);
}

TEST_CASE("a result says how long everybody computed", "[integration][futures]") {
  FutureFixture f;
  const StepResult result = step_of(f.trainer, 0).get();
  REQUIRE(result.ranks.size() == 2);
  for (const RankTimes& t : result.ranks) {
    CHECK(t.forward > 0.0);
    CHECK(t.backward > 0.0);
    CHECK(t.update > 0.0);
    CHECK(t.forward + t.backward + t.update <= result.seconds);
    CHECK(t.peak_bytes > 0);
  }
  CHECK(result.bubble > 0.0);
  CHECK(result.bubble < 1.0);
}

}  // namespace
}  // namespace stagecraft::tests
