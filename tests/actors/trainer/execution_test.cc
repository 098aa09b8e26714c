/// Tests making an execution: checked and lowered once, and run by trainers as it is.
#include "stagecraft/actors/trainer/execution.h"

#include <torch/torch.h>

#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kExecutedMicrobatches = 4;

struct Executed {
  explicit Executed(int stages) : module(std::make_shared<testing::Chain>(stages)) {}

  std::shared_ptr<testing::Chain> module;
  Batch batch{torch::randn({8, 8})};
  Program program = compile(module,
                            {.inputs = batch,
                             .labels = batch,
                             .loss = testing::mean_square,
                             .microbatches = kExecutedMicrobatches});
};

TEST_CASE("an execution has the plan of its schedule", "[executor][execution]") {
  const Executed e(3);
  const Schedule schedule = one_f_one_b(3, kExecutedMicrobatches);
  const Execution execution = make_execution(e.program, schedule);
  CHECK(execution.program.shared() == e.program.shared());
  CHECK(execution.sized.shared() == e.program.shared());
  CHECK(execution.schedule == schedule);
  CHECK(execution.layout.ranks() == 3);
  CHECK(to_string(*execution.plan) ==
        to_string(lower_schedule(e.program, schedule, Layout::of(schedule), /*training=*/true)));
  CHECK(execution.notes.empty());
  CHECK(execution.reordered_buffers.empty());
}

TEST_CASE("an execution has the stages of the schedule's copies, and the program at its sizes",
          "[executor][execution]") {
  const Executed e(2);
  const Execution copies = make_execution(e.program, dualpipe(2, kExecutedMicrobatches));
  CHECK(copies.stage_graph().size() == 4);
  CHECK(copies.sized.shared() == e.program.shared());
  CHECK(copies.program.compiled().partition.stages.size() == 2);
  StageGraph sized = StageGraph::chain(2);
  sized.set_microbatch_sizes({1, 2});
  const Execution sizes = make_execution(e.program, gpipe(sized, kExecutedMicrobatches));
  CHECK(sizes.sized.stage_graph().microbatch_sizes() == std::vector<int>{1, 2});
  CHECK(sizes.plan->tables.losses == kExecutedMicrobatches / 2);
}

TEST_CASE("a schedule that cannot run the program makes no execution", "[executor][execution]") {
  const Executed e(2);
  CHECK_THAT(refusal([&] { (void)make_execution(e.program, gpipe(3, kExecutedMicrobatches)); },
                     Errc::ScheduleInvalid),
             ContainsSubstring("stage"));
}

TEST_CASE("EX-1: trainers run the plan of their execution, and lower nothing again",
          "[executor][execution]") {
  const Executed e(2);
  const Execution execution = make_execution(e.program, one_f_one_b(2, kExecutedMicrobatches));
  const Cluster cluster = Cluster::local(2);
  Trainer first(cluster, execution, Sgd{.lr = 0.1}, {.seed = 5});
  Trainer second(cluster, execution, Sgd{.lr = 0.1}, {.seed = 5});
  CHECK(&first.plan() == execution.plan.get());
  CHECK(&second.plan() == execution.plan.get());
  Trainer by_schedule(
      cluster, e.program, one_f_one_b(2, kExecutedMicrobatches), Sgd{.lr = 0.1}, {.seed = 5});
  CHECK(first.step(e.batch, e.batch).get().losses == second.step(e.batch, e.batch).get().losses);
  (void)by_schedule.step(e.batch, e.batch).get();
  CHECK(first.step(e.batch, e.batch).get().losses ==
        by_schedule.step(e.batch, e.batch).get().losses);
}

TEST_CASE("a trainer of an execution checks cluster and options", "[executor][execution]") {
  const Executed e(2);
  const Execution execution = make_execution(e.program, one_f_one_b(2, kExecutedMicrobatches));
  CHECK_THAT(
      refusal([&] { const Trainer t(Cluster::local(1), execution, Sgd{}); }, Errc::ClusterMember),
      ContainsSubstring("runs on 2 ranks and the cluster has 1"));
  CHECK_THAT(
      refusal([&] { const Trainer t(Cluster::local(2), execution, Sgd{}, {.outstanding = 0}); }),
      ContainsSubstring("outstanding is at least 1"));
}

}  // namespace
}  // namespace stagecraft
