/// Ranks that are processes: the same bits, and what happens when one of them dies.
#include <csignal>

#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kSteps = 3;

/// Trains on `cluster` and beside it in one process, and compares all that comes of it.
void check_equal_to_one_process(const Cluster& cluster,
                                const ModelOptions& model,
                                const std::string& schedule) {
  const Program program = make_program(model);
  Trainer trainer(
      cluster, program, make_schedule(schedule, program), AdamW{.lr = 1e-2}, {.seed = 5});
  Reference reference(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
  for (int i = 0; i < kSteps; ++i) {
    const Data batch = data(i);
    const StepResult pipelined = trainer.step(batch.inputs, batch.labels).get();
    const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
    CHECK(pipelined.losses == expected.losses);
    CHECK(pipelined.gradient_norm == expected.gradient_norm);
  }
  CHECK(same_bits(without_spare(trainer.state_dict()), weights_of(reference)));
}

TEST_CASE("ranks that are processes give the bits of one process", "[integration][processes]") {
  const Cluster cluster = Cluster::spawn(4);
  for (const char* schedule : {"gpipe", "1f1b", "own"}) {
    CAPTURE(schedule);
    check_equal_to_one_process(cluster, {.stages = 4, .dropout = 0.2}, schedule);
  }
}

TEST_CASE("so do several ranks in a process, and threads beside processes",
          "[integration][processes]") {
  const auto options =
      GENERATE(SpawnOptions{.ranks_per_process = 2},
               SpawnOptions{.local_ranks = 2},
               SpawnOptions{.ranks_per_process = 3, .local_ranks = 1});
  check_equal_to_one_process(Cluster::spawn(4, options), {.stages = 4, .dropout = 0.2}, "1f1b");
}

}  // namespace
}  // namespace stagecraft::tests
