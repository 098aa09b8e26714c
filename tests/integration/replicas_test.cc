/// Two replicas of a pipeline, as a whole: what they compute, refuse and survive.
#include "stagecraft/scheduler/builders/chimera.h"
#include "stagecraft/scheduler/builders/dualpipe.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

const ModelOptions kModel{.stages = 2, .dropout = 0.2, .statistics = false};

TEST_CASE("each replica draws the random numbers of its own microbatches",
          "[integration][replicas]") {
  const Program program = make_program(kModel);
  Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, dualpipe(2, kMicrobatches), AdamW{.lr = 1e-2}, {.seed = 5});
  Reference reference(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
  const Data batch = data(0);
  const StepResult result = trainer.step(batch.inputs, batch.labels).get();
  const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
  CHECK(result.losses == expected.losses);  // before any sum of gradients: the same bits
  CHECK(result.gradient_norm == Catch::Approx(expected.gradient_norm).epsilon(1e-6));
  CHECK(trainer.evaluate(batch.inputs, batch.labels) < 10.0);
}

TEST_CASE("a rank that fails before its reduction changes no weight, and the next step works",
          "[integration][replicas]") {
  const Program program = make_program(kModel);
  Cluster cluster = Cluster::local(2);
  const auto failing = std::make_shared<FailingRank>();
  Trainer trainer(cluster,
                  program,
                  chimera(2, kMicrobatches),
                  AdamW{.lr = 1e-2},
                  {.before_instruction = hook_of(failing)});
  const StateDict before = trainer.state_dict();
  const Data batch = data(0);
  failing->fail_at(first(trainer.plan(), Rank(1), Op::Collective));
  CHECK_THROWS_WITH(trainer.step(batch.inputs, batch.labels).get(),
                    ContainsSubstring("injected failure"));
  CHECK(same_bits(trainer.state_dict(), before));
  CHECK(trainer.step(batch.inputs, batch.labels).get().step == 1);
  CHECK_FALSE(same_bits(trainer.state_dict(), before));
}

TEST_CASE("a stage that writes running statistics cannot be held twice",
          "[integration][replicas]") {
  const Program program = make_program({.stages = 2});
  const CheckResult checked = check(program, chimera(2, kMicrobatches));
  REQUIRE(checked.violations.size() == 1);
  CHECK_THAT(checked.violations[0].message,
             ContainsSubstring("writes norm.running_mean, norm.running_var") &&
                 ContainsSubstring("use a schedule of one replica"));
  Cluster cluster = Cluster::local(2);
  CHECK_THROWS_WITH(Trainer(cluster, program, chimera(2, kMicrobatches), AdamW{}),
                    ContainsSubstring("writes norm.running_mean"));
}

}  // namespace
}  // namespace stagecraft::tests
