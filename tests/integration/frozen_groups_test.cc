/// Tests groups that are frozen and train again during a run: as in one process, bit by bit, over
/// checkpoints, in shards, in parts of experts and in worker processes.
#include <functional>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/usual_device.h"

namespace stagecraft::tests::frozen_groups {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kLower = "layer0.*";
constexpr std::int64_t kSteps = 7;

const TrainerOptions kFreezing{
    .groups = {{.match = kLower}, {.match = "layer1.*", .lr_scale = 0.5, .frozen_for = 2}},
    .clip = 0.1,
    .average = 0.9,
    .seed = 9};
const ReferenceOptions kAlike{.groups = kFreezing.groups,
                              .clip = kFreezing.clip,
                              .average = kFreezing.average,
                              .seed = kFreezing.seed};

/// Freezes the lower layer in the updates 2 to 4, and the next layer also in the fifth.
template <class Trained>
void set_for(Trained& trained, std::int64_t step) {
  switch (step) {
    case 1:
      trained.set_frozen(kLower, true);
      trained.set_frozen("layer1.*", false);  // its frozen_for does not count
      break;
    case 4:
      trained.set_frozen(kLower, std::nullopt);
      trained.set_frozen("layer1.*", true);
      break;
    case 5:
      trained.set_frozen("layer1.*", false);
      break;
    default:
      break;
  }
}

/// Returns the tensors of these parameters: weights, optimizer's state and averages.
TensorsByName of_lower(const TensorsByName& all, const std::string& part = "layer0.") {
  TensorsByName found;
  for (const auto& [name, tensor] : all) {
    if (name.find(part) != std::string::npos) {
      found.emplace(name, tensor);
    }
  }
  return found;
}

Execution in_copies_of(const Program& program, Sharing sharing) {
  const Schedule rows = build_schedule("1f1b", {.devices = 2, .microbatches = kMicrobatches / 2});
  ReplicateOptions options = ReplicateOptions::at(sharing);
  options.bucket_bytes = 20000;  // several buckets a stage
  return make_execution(program, in_copies(rows, 2), options);
}

void step_both(Trainer& trainer, Reference& reference, std::int64_t step) {
  set_for(trainer, step);
  set_for(reference, step);
  const Data batch = data(step);
  const StepResult pipelined = trainer.step(batch.inputs, batch.labels).get();
  const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
  CHECK(pipelined.losses == expected.losses);
  CHECK(testing::same_norm(pipelined.gradient_norm, expected.gradient_norm));
}

TEST_CASE("PG-3: a frozen group keeps weights, optimizer state and averages, and goes on with them",
          "[integration][optimizers]") {
  const TemporaryFolder folder;
  const Program program = make_program({.stages = 4, .dropout = 0.2});
  const auto trainer_of = [&] {
    return Trainer(Cluster::local(4), program, "1f1b", AdamW{.lr = 1e-2}, kFreezing);
  };
  Trainer trainer = trainer_of();
  Reference reference(program, AdamW{.lr = 1e-2}, kAlike);
  TensorsByName before;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    step_both(trainer, reference, step);
    CHECK(same_bits(weights_of(trainer), weights_of(reference)));
    const TensorsByName now =
        tensors_saved_by(trainer, fmt::format("{}/{}.ckpt", folder.path(), step));
    const bool frozen = step >= 1 && step < 4;
    CHECK(of_lower(now).size() >= 8);  // two parameters: weight, two moments, average
    CHECK((step > 0 && equal(of_lower(now), of_lower(before))) == frozen);
    before = now;
  }
  const Checkpoint last = trainer.checkpoint();
  CHECK(last.frozen == FrozenUpdates{{kLower, 3}, {"layer1.*", 2}});

  // A run that continues has the same bits, and asks for the same groups itself.
  Trainer resumed = trainer_of();
  resumed.load(folder.path() + "/2.ckpt");
  set_for(resumed, 1);
  for (std::int64_t step = 3; step < kSteps; ++step) {
    set_for(resumed, step);
    (void)step_of(resumed, step).get();
  }
  CHECK(equal(tensors_saved_by(resumed, folder.path() + "/resumed"), before));
  CHECK(resumed.checkpoint().frozen == last.frozen);
}

TEST_CASE("what set_frozen says until a group trains is what frozen_for says",
          "[integration][optimizers]") {
  const Program program = make_program();
  const auto trainer_of = [&](ParameterGroup group) {
    return Trainer(Cluster::local(2),
                   program,
                   "1f1b",
                   AdamW{.lr = 1e-2},
                   {.groups = {std::move(group)}, .clip = 0.1, .seed = 9});
  };
  Trainer said = trainer_of({.match = kLower});
  Trainer options = trainer_of({.match = kLower, .frozen_for = 2});
  Trainer throughout = trainer_of({.match = kLower, .frozen = true});
  said.set_frozen(kLower, true);
  for (std::int64_t step = 0; step < 4; ++step) {
    if (step == 2) {
      said.set_frozen(kLower, std::nullopt);
    }
    const double norm = step_of(said, step).get().gradient_norm;
    CHECK(norm == step_of(options, step).get().gradient_norm);
    if (step < 2) {
      CHECK(norm == step_of(throughout, step).get().gradient_norm);
      CHECK(same_bits(said.state_dict(), throughout.state_dict()));
    }
    CHECK(same_bits(said.state_dict(), options.state_dict()));
  }
}

TEST_CASE("the last batch of an update says which groups it freezes, in worker processes too",
          "[integration][optimizers][processes]") {
  const Program program = make_program();
  const TrainerOptions options{.groups = {{.match = kLower}}, .clip = 0.1, .seed = 9};
  Trainer processes(Cluster::spawn(2), program, "1f1b", AdamW{.lr = 1e-2}, options);
  Trainer threads(Cluster::local(2), program, "1f1b", AdamW{.lr = 1e-2}, options);
  for (Trainer* trainer : {&processes, &threads}) {
    for (std::int64_t step = 0; step < 3; ++step) {
      trainer->set_frozen(kLower, step != 1 && trainer == &threads);
      const Data first = data(2 * step);
      trainer->accumulate(first.inputs, first.labels);
      trainer->set_frozen(kLower, step == 1);
      const Data second = data(2 * step + 1);
      (void)trainer->step(second.inputs, second.labels).get();
    }
  }
  CHECK(same_bits(processes.state_dict(), threads.state_dict()));
  CHECK(processes.checkpoint().frozen == FrozenUpdates{{kLower, 1}});
}

TEST_CASE("copies freeze groups like one process, whatever they share", "[integration][shards]") {
  const auto sharing =
      GENERATE(Sharing::Nothing, Sharing::States, Sharing::Gradients, Sharing::Weights);
  CAPTURE(sharing);
  const Program program = make_program(kShardedModel);
  TrainedCopies run(in_copies_of(program, sharing), AdamW{.lr = 1e-2}, kFreezing);
  ReferenceOptions alike = kAlike;
  alike.sums = std::make_shared<const SumOrder>(sum_order_of(run.trainer.plan()));
  Reference reference(program, AdamW{.lr = 1e-2}, std::move(alike));
  for (std::int64_t step = 0; step < kSteps; ++step) {
    step_both(run.trainer, reference, step);
  }
  StateDict trained = weights_of(run.trainer);
  std::erase_if(trained, [](const auto& w) { return w.first.starts_with("norm."); });  // unused
  CHECK(same_bits(trained, weights_of(reference)));
}

TEST_CASE("parts of experts freeze and go on", "[integration][experts]") {
  const TemporaryFolder folder;
  const Program program =
      make_program({.stages = 2, .statistics = false, .width = 16, .experts = 4});
  const Schedule rows = build_schedule("1f1b", {.devices = 2, .microbatches = kMicrobatches / 2});
  const auto run_of = [&](ParameterGroup group) {
    return std::make_unique<TrainedCopies>(
        make_execution(program, in_copies(rows, 2), {}, "EP", 0),
        AdamW{.lr = 1e-2},
        TrainerOptions{.groups = {std::move(group)}, .clip = 0.1, .average = 0.9, .seed = 9});
  };
  const auto run = run_of({.match = "experts0.*"});
  const auto throughout = run_of({.match = "experts0.*", .frozen = true});
  TensorsByName before;
  for (std::int64_t step = 0; step < 4; ++step) {
    const bool frozen = step == 0 || step == 2;
    run->trainer.set_frozen("experts0.*", frozen);
    run->train(step + 1);
    if (step == 0) {
      throughout->train(1);
      CHECK(run->last.gradient_norm == throughout->last.gradient_norm);
    }
    const TensorsByName now =
        of_lower(tensors_saved_by(run->trainer, folder.path() + "/a"), "experts0.");
    REQUIRE_FALSE(now.empty());
    CHECK((step > 0 && equal(now, before)) == (step == 2));
    before = now;
  }
}

TEST_CASE("a step of frozen parameters alone fails, changes nothing, and may be made again",
          "[integration][optimizers][bad-input]") {
  const Program program = make_program();
  const TrainerOptions options{.groups = {{.match = "layer?.*"}, {.match = "*"}}, .seed = 9};
  Trainer trainer(Cluster::local(2), program, "1f1b", AdamW{.lr = 1e-2}, options);
  Reference reference(program, AdamW{.lr = 1e-2}, {.groups = options.groups, .seed = 9});
  trainer.set_frozen("layer?.*", true);
  reference.set_frozen("layer?.*", true);
  trainer.set_frozen("*", true);
  reference.set_frozen("*", true);
  const StateDict before = trainer.state_dict();
  const Error error = error_of(step_of(trainer, 0));
  CHECK(error.code() == Errc::UsageArgument);
  CHECK_THAT(error.message(), ContainsSubstring("freeze every parameter"));
  CHECK(same_bits(trainer.state_dict(), before));
  const Data batch = data(0);
  CHECK_THAT(refusal([&] { (void)reference.step(batch.inputs, batch.labels); }),
             ContainsSubstring("freeze every parameter"));
  trainer.set_frozen("*", false);
  (void)step_of(trainer, 0).get();
  CHECK(trainer.steps() == 1);
  CHECK_FALSE(same_bits(trainer.state_dict(), before));

  CHECK_THAT(refusal([&] { trainer.set_frozen("layer.*", true); }),
             ContainsSubstring("did you mean layer?.*?"));
  refusal([&] { reference.set_frozen("layer.*", true); });
  Checkpoint wrong = trainer.checkpoint();
  wrong.frozen = FrozenUpdates{{"*", 2}};
  CHECK_THAT(refusal([&] { trainer.load(wrong); }, Errc::CheckpointFormat),
             ContainsSubstring("frozen in more updates than its 1"));
  wrong.frozen = FrozenUpdates{{"*", 1}};
  wrong.loss_scale = LossScale{.skipped = 1};
  CHECK_THAT(refusal([&] { trainer.load(wrong); }, Errc::CheckpointFormat),
             ContainsSubstring("frozen in more updates than its 0"));
  wrong.loss_scale = LossScale{.skipped = 2};
  CHECK_THAT(refusal([&] { trainer.load(wrong); }, Errc::CheckpointFormat),
             ContainsSubstring("a scale of losses that no run of 1 steps can have"));
}

}  // namespace
}  // namespace stagecraft::tests::frozen_groups
