/// Tests two replicas of a pipeline: their results, refusals, and survival of faults.
#include <torch/torch.h>

#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

const ModelOptions kReplicatedModel{.stages = 2, .dropout = 0.2, .statistics = false};

TEST_CASE("each replica draws the random numbers of its own microbatches",
          "[integration][replicas]") {
  const Program program = make_program(kReplicatedModel);
  Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, dualpipe(2, kMicrobatches), AdamW{.lr = 1e-2}, {.seed = 5});
  Reference reference(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
  const Data batch = data(0);
  const StepResult result = trainer.step(batch.inputs, batch.labels).get();
  const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
  CHECK(result.losses == expected.losses);  // before any sum of gradients, the bits are the same
  CHECK(result.gradient_norm == Catch::Approx(expected.gradient_norm).epsilon(1e-6));
  CHECK(trainer.evaluate(batch.inputs, batch.labels) < 10.0);
}

TEST_CASE("a rank that fails before its reduction changes no weight, and the next step works",
          "[integration][replicas]") {
  const Program program = make_program(kReplicatedModel);
  Cluster cluster = Cluster::local(2);
  const auto failing = std::make_shared<FailingRank>();
  Trainer trainer(cluster,
                  program,
                  chimera(2, kMicrobatches),
                  AdamW{.lr = 1e-2},
                  {.before_instruction = hook_of(failing)});
  const StateDict before = trainer.state_dict();
  const Data batch = data(0);
  failing->fail_at(first(trainer.plan(), Rank(1), Op::Start));
  CHECK_THROWS_WITH(trainer.step(batch.inputs, batch.labels).get(),
                    ContainsSubstring("injected failure"));
  CHECK(same_bits(trainer.state_dict(), before));
  CHECK(trainer.step(batch.inputs, batch.labels).get().step == 1);
  CHECK_FALSE(same_bits(trainer.state_dict(), before));
}

/// Counts and adds up its inputs, in a stage that trains and in one that does not.
struct Seeing : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(4, 4))};
  torch::Tensor count{register_buffer("count", torch::zeros({}, torch::kLong))};
  torch::Tensor sum{register_buffer("sum", torch::zeros({3}))};
  torch::Tensor forward(torch::Tensor x) {
    const auto y = stage("front", [&] {
      sum.add_(x.sum());
      count.add_(1);
      return x * 2;
    });
    return stage("back", [&] { return a(y); });
  }
};

TEST_CASE("behind every step all copies of a stage have the buffers of the first one",
          "[integration][replicas]") {
  const bool processes = GENERATE(false, true);
  Seeing module;
  const auto x = torch::rand({4 * kMicrobatches, 4});
  const Program program = compile(
      module,
      {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = kMicrobatches});
  const CheckResult checked = check(program, chimera(2, kMicrobatches));
  CHECK(checked.ok());
  REQUIRE_FALSE(checked.notes.empty());
  CHECK_THAT(checked.notes[0],
             ContainsSubstring("writes count, sum") && ContainsSubstring("values of the first"));
  Cluster cluster = processes ? Cluster::spawn(2) : Cluster::local(2);
  Trainer trainer(cluster, program, chimera(2, kMicrobatches), AdamW{});
  torch::Tensor expected = torch::zeros({3});
  for (int step = 1; step <= 2; ++step) {
    (void)trainer.step({x}, {x}).get();
    const auto parts = x.chunk(kMicrobatches);
    for (int m = 0; m < kMicrobatches / 2; ++m) {
      expected.add_(parts[static_cast<std::size_t>(m)].sum());
    }
    const std::map<std::string, at::Tensor> buffers = [&] {
      const StateDict named = trainer.state_dict();
      return std::map<std::string, at::Tensor>(named.begin(), named.end());
    }();
    CHECK(buffers.at("count").item<std::int64_t>() == step * kMicrobatches / 2);
    CHECK(buffers.at("sum").equal(expected));
  }
}

}  // namespace
}  // namespace stagecraft::tests
