/// Tests that runs whose copies share read no memory before it is written, and none after it is
/// given back: they train the same bits in memory that is poisoned then.
#include "stagecraft/tests/support/poisoned_memory.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "stagecraft/actors/executor/stage/stage_buckets.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests::poisoned_memory {
namespace {

using testing::PoisonedMemory;

// ---- the poison ---------------------------------------------------------------------------------

bool is_poison(const float* values, std::int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isnan(value); });
}

TEST_CASE("memory that is not yet written, or given back, reads as NaN", "[integration][poison]") {
  const PoisonedMemory poison;
  CHECK(poison.is_in_use());
  at::Tensor tensor = at::empty({1000});
  CHECK(is_poison(tensor.const_data_ptr<float>(), 1000));
  tensor.fill_(1.0);
  float* const late = tensor.mutable_data_ptr<float>();
  tensor = at::Tensor();
  CHECK(is_poison(late, 1000));
  CHECK(poison.handed_out() >= 1);
  CHECK(poison.freed() >= 1);
  CHECK(poison.written_late() == 0);
  late[999] = 1.0F;
  CHECK(poison.written_late() == 1);
}

TEST_CASE("weights that ranks share read as NaN after their release, and until they are gathered",
          "[integration][poison][shards]") {
  const Program program = make_program(kShardedModel);
  const StageProgram& stage = program.compiled().partition.stages[0];
  const auto chunks = static_cast<std::int32_t>(stage.chunks.size());
  const PoisonedMemory poison;
  const StageBuckets buckets(
      stage,
      AdamW{},
      {},
      std::vector<BucketCut>{
          {.chunks = {0, chunks}, .shard = 0, .shards = 2, .sharing = Sharing::Weights}});
  const at::Tensor weights = buckets.flat_weights(0)[0];
  const std::int64_t count = weights.numel();
  buckets.hold_weights(0);
  const auto* const first = weights.const_data_ptr<float>();
  CHECK(is_poison(first, count));
  weights.copy_(at::cat({buckets.own_weights(0)[0], buckets.own_weights(0)[0]}));
  CHECK(!std::isnan(*first));
  buckets.release_weights(0);
  CHECK(weights.storage().data() == nullptr);
  CHECK(is_poison(first, count));
  buckets.hold_weights(0);
  CHECK(is_poison(weights.const_data_ptr<float>(), count));
}

// ---- runs under it ------------------------------------------------------------------------------

/// Holds all that a run computes: the results of its steps and evaluations, and its last state.
struct Trained {
  std::vector<double> numbers;
  TensorsByName state;
};

constexpr std::int64_t kSteps = 2;

Trained trained(const Execution& execution, const TrainerOptions& options, bool poisons) {
  TrainedCopies run(execution, AdamW{.lr = 1e-2}, options);
  // After the trainer: its ranks have set their own allocator (SY-1).
  const auto poison = poisons ? std::make_unique<PoisonedMemory>() : nullptr;
  Trained result;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const Data batch = data(step, execution.program.microbatches());
    const StepResult made = run.trainer.step(batch.inputs, batch.labels).get();
    result.numbers.insert(result.numbers.end(), {made.mean_loss, made.gradient_norm});
    result.numbers.push_back(run.trainer.evaluate(batch.inputs, batch.labels));
  }
  const TemporaryFolder folder;
  for (const auto& [name, tensor] : tensors_saved_by(run.trainer, folder.path() + "/a.ckpt")) {
    result.state.emplace(name, tensor.clone());
  }
  if (poison) {
    CHECK(poison->is_in_use());
    CHECK(poison->freed() > 0);
    CHECK(poison->written_late() == 0);
  }
  return result;
}

void check_alike(const Execution& execution, const TrainerOptions& options) {
  const Trained plain = trained(execution, options, /*poisons=*/false);
  const Trained poisoned = trained(execution, options, /*poisons=*/true);
  CHECK(poisoned.numbers == plain.numbers);
  CHECK(!plain.state.empty());
  CHECK(equal(poisoned.state, plain.state));
}

Execution two_copies_of(const Program& program,
                        const std::string& builder,
                        Sharing sharing,
                        std::int64_t bucket_bytes,
                        const std::string& divided = "") {
  const Schedule rows =
      build_schedule(builder, {.devices = 2, .microbatches = program.microbatches() / 2});
  ReplicateOptions options = ReplicateOptions::at(sharing);
  options.bucket_bytes = bucket_bytes;
  return make_execution(program, in_copies(rows, 2), options, divided);
}

const TrainerOptions kUsual{.clip = 0.1, .seed = 9};

TEST_CASE("copies that share train the same bits in poisoned memory", "[integration][poison]") {
  const auto [builder, stages, microbatches] = GENERATE(table<std::string, int, int>(
      {{"1f1b", 2, 4}, {"interleaved", 4, 4}, {"zb-v", 4, 4}, {"dualpipev", 4, 8}}));
  const bool tied = GENERATE(false, true);
  ModelOptions model = kShardedModel;
  model.stages = stages;
  model.microbatches = microbatches;
  model.tied = tied;
  const Program program = make_program(model);
  for (const Sharing sharing : {Sharing::States, Sharing::Gradients, Sharing::Weights}) {
    CAPTURE(builder, tied, sharing);
    check_alike(two_copies_of(program, builder, sharing, 20000), kUsual);
  }
}

TEST_CASE("recomputed stages and parts train the same bits in poisoned memory",
          "[integration][poison]") {
  const auto recomputed =
      GENERATE(std::vector<std::string>{"part0", "part1"}, std::vector<std::string>{"layer1"});
  ModelOptions model = kShardedModel;
  model.recomputed = recomputed;
  const Program program = make_program(model);
  for (const Sharing sharing : {Sharing::States, Sharing::Gradients, Sharing::Weights}) {
    CAPTURE(recomputed, sharing);
    check_alike(two_copies_of(program, "1f1b", sharing, 20000), kUsual);
  }
}

TEST_CASE("masters, averages, groups and kept gradients have the same bits in poisoned memory",
          "[integration][poison][masters]") {
  ModelOptions model = kShardedModel;
  model.type = c10::ScalarType::BFloat16;
  const Program program = make_program(model);
  TrainerOptions options = kUsual;
  options.groups = {{.match = "layer0.*", .frozen = true},
                    {.match = "layer?.weight", .lr_scale = 0.5, .frozen_for = 1}};
  options.average = 0.9;
  options.keep_gradients = true;
  options.master_weights = true;
  for (const Sharing sharing : {Sharing::States, Sharing::Gradients, Sharing::Weights}) {
    CAPTURE(sharing);
    check_alike(two_copies_of(program, "1f1b", sharing, 10000), options);
  }
}

TEST_CASE("ranks that divide experts train the same bits in poisoned memory",
          "[integration][poison][experts]") {
  const auto [builder, stages, microbatches] = GENERATE(table<std::string, int, int>(
      {{"1f1b", 2, 4}, {"interleaved", 4, 4}, {"zb-v", 4, 4}, {"dualpipev", 4, 8}}));
  const auto recomputed = GENERATE(std::vector<std::string>(), std::vector<std::string>{"part0"});
  ModelOptions model{.stages = stages,
                     .microbatches = microbatches,
                     .dropout = 0.2,
                     .statistics = false,
                     .width = 16,
                     .experts = 4};
  model.recomputed = recomputed;
  const Program program = make_program(model);
  for (const Sharing sharing : {Sharing::Nothing, Sharing::Weights}) {
    CAPTURE(builder, recomputed, sharing);
    check_alike(two_copies_of(program, builder, sharing, 4000, "EP"), kUsual);
  }
}

}  // namespace
}  // namespace stagecraft::tests::poisoned_memory
