/// Tests trainers whose weights in half types have masters: the bits of one process whatever copies
/// share, checkpoints, recovery, averages, and what is refused.
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests::masters {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr ModelOptions kHalfModel{
    .stages = 2, .dropout = 0.2, .statistics = false, .type = c10::ScalarType::BFloat16};
constexpr ModelOptions kWideHalfModel{.stages = 2,
                                      .dropout = 0.2,
                                      .statistics = false,
                                      .width = 64,
                                      .type = c10::ScalarType::BFloat16};

/// That of --verify for half types.
constexpr double kHalfBound = 1e-2;
/// Rounding in bfloat16 moves the change of a tensor by less than this part of it.
constexpr double kRoundedShare = 0.1;

const TrainerOptions kWithMasters{.clip = 0.1, .master_weights = true, .seed = 9};
const ReferenceOptions kLikewise{.clip = 0.1, .master_weights = true, .seed = 9};

TensorsByName state_of(Trainer& trainer) {
  TensorsByName all;
  for (const StateTensor& state : trainer.checkpoint().tensors) {
    all.emplace(state.name, state.tensor);
  }
  return all;
}

/// Checks that the trainer has all state of the reference, in its types and bits.
void check_same_state(Trainer& trainer, const Reference& reference) {
  const TensorsByName trained = state_of(trainer);
  int masters = 0;
  for (const StateTensor& expected : reference.state()) {
    CAPTURE(expected.name);
    REQUIRE(trained.contains(expected.name));
    CHECK(trained.at(expected.name).scalar_type() == expected.tensor.scalar_type());
    CHECK(at::equal(trained.at(expected.name), expected.tensor));
    masters += expected.name.starts_with(kMaster) ? 1 : 0;
  }
  CHECK(masters > 0);
}

/// Checks that each weight with a master is the master, rounded (MWT-2), and that the optimizer's
/// state is in float32 (MWT-1). Returns the number of masters.
int check_rounded(const TensorsByName& state) {
  int masters = 0;
  for (const auto& [name, tensor] : state) {
    CAPTURE(name);
    if (is_of_optimizer(name)) {
      CHECK(tensor.scalar_type() == at::kFloat);
    }
    if (name.starts_with(kMaster)) {
      ++masters;
      const at::Tensor& weight = state.at(state_name(kWeight, name.substr(kMaster.size())));
      CHECK(at::equal(weight, tensor.to(weight.scalar_type())));
    }
  }
  return masters;
}

template <class OneTrainer>
void train_both(OneTrainer& trainer, Reference& reference, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) {
    const Data batch = data(step);
    const StepResult pipelined = trainer.step(batch.inputs, batch.labels).get();
    const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
    CHECK(pipelined.losses == expected.losses);
    CHECK(pipelined.skipped == expected.skipped);
    CHECK(
        (pipelined.skipped || testing::same_norm(pipelined.gradient_norm, expected.gradient_norm)));
  }
}

Execution in_two_copies(const Program& program, Sharing sharing) {
  const Schedule rows = build_schedule("1f1b", {.devices = 2, .microbatches = kMicrobatches / 2});
  ReplicateOptions options = ReplicateOptions::at(sharing);
  options.bucket_bytes = 10000;  // several buckets a stage
  return make_execution(program, in_copies(rows, 2), options);
}

// ---- bits ---------------------------------------------------------------------------------------

TEST_CASE("with masters every optimizer equals one process, ties and groups included",
          "[integration][masters]") {
  ModelOptions model = kHalfModel;
  model.tied = true;
  const Program program = make_program(model);
  std::vector<Optimizer> optimizers{
      CustomOptimizer{.lr = 1e-2, .state = {"mean"}, .update = [](const CustomUpdate& u) {
                        u.state[0].mul_(0.9).add_(u.gradient, 0.1);
                        u.parameter.add_(u.state[0], -u.learning_rate);
                      }}};
  for (const OptimizerInfo& info : kOptimizers) {
    Optimizer& optimizer = optimizers.emplace_back(optimizer_named(info.name).value());
    for (const auto& [setting, value] : {std::pair("lr", 1e-2),
                                         std::pair("weight_decay", 0.1),
                                         std::pair("momentum", 0.5),
                                         std::pair("amsgrad", 1.0),
                                         std::pair("centered", 1.0)}) {
      (void)set_setting(optimizer, setting, value);  // of those that have it
    }
  }
  TrainerOptions options = kWithMasters;
  options.groups = {{.match = "layer0.*", .frozen = true},
                    {.match = "*.bias", .lr = 3e-2, .weight_decay = 0.0},
                    {.match = "layer?.weight", .lr_scale = 0.5, .frozen_for = 1}};
  ReferenceOptions alike = kLikewise;
  alike.groups = options.groups;
  for (const Optimizer& optimizer : optimizers) {
    CAPTURE(optimizer_name(optimizer));
    Trainer trainer(Cluster::local(2), program, "1f1b", optimizer, options);
    Reference reference(program, optimizer, alike);
    train_both(trainer, reference, 3);
    check_same_state(trainer, reference);
    const TensorsByName state = state_of(trainer);
    CHECK(check_rounded(state) > 0);
    CHECK_FALSE(state.contains("master:layer0.weight"));  // PG-2
  }
}

TEST_CASE("with masters copies equal one process that sums like them, whatever they share or tie",
          "[integration][masters][shards]") {
  const auto sharing =
      GENERATE(Sharing::Nothing, Sharing::States, Sharing::Gradients, Sharing::Weights);
  ModelOptions model = kWideHalfModel;
  model.tied = GENERATE(false, true);
  CAPTURE(sharing, model.tied);
  const Program program = make_program(model);
  const AdamW adam{.lr = 1e-2};
  TrainedCopies run(in_two_copies(program, sharing), adam, kWithMasters);
  ReferenceOptions alike = kLikewise;
  alike.sums = std::make_shared<const SumOrder>(sum_order_of(run.trainer.plan()));
  Reference reference(program, adam, std::move(alike));
  train_both(run.trainer, reference, 4);
  check_same_state(run.trainer, reference);
  CHECK(check_rounded(state_of(run.trainer)) > 0);
}

TEST_CASE("ranks of other processes keep masters too", "[integration][masters][processes]") {
  const Program program = make_program(kHalfModel);
  Trainer trainer(Cluster::spawn(2), program, "1f1b", Adagrad{.lr = 1e-2}, kWithMasters);
  Reference reference(program, Adagrad{.lr = 1e-2}, kLikewise);
  train_both(trainer, reference, 3);
  check_same_state(trainer, reference);
}

TEST_CASE("ranks that divide experts train their parts' masters like one process, and resume them",
          "[integration][masters][experts]") {
  ModelOptions model = kHalfModel;
  model.dropout = 0.0;
  model.width = 16;
  model.experts = 4;
  const Program program = make_program(model);
  const Sharing sharing = GENERATE(Sharing::Nothing, Sharing::Weights);
  CAPTURE(sharing);
  const Schedule rows = build_schedule("1f1b", {.devices = 2, .microbatches = kMicrobatches / 2});
  ReplicateOptions sums = ReplicateOptions::at(sharing);
  sums.bucket_bytes = 4000;
  const Execution execution = make_execution(program, in_copies(rows, 2), sums, "EP", 0);
  const AdamW adam{.lr = 1e-3};
  TrainedCopies run(execution, adam, kWithMasters);
  const TensorsByName before = state_of(run.trainer);
  Reference reference(program, adam, kLikewise);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  ReferenceStep expected;
  for (std::int64_t step = 0; step < 4; ++step) {
    const Data batch = data(step);
    run.train(step + 1);
    expected = reference.step(batch.inputs, batch.labels);
    if (step == 1) {
      run.trainer.save(path);
    }
  }
  const TensorsByName state = state_of(run.trainer);
  CHECK(check_rounded(state) > 0);
  CHECK_THAT(run.last.mean_loss, Catch::Matchers::WithinRel(expected.mean_loss, kHalfBound));
  CHECK_THAT(run.last.gradient_norm,
             Catch::Matchers::WithinRel(expected.gradient_norm, kHalfBound));
  int masters = 0;
  for (const StateTensor& one : reference.state()) {
    if (one.name.starts_with(kMaster)) {
      CAPTURE(one.name);
      const at::Tensor apart = state.at(one.name) - one.tensor;
      CHECK(apart.abs().max().item<double>() <= kHalfBound);
      const at::Tensor change = one.tensor - before.at(one.name);
      CHECK(apart.norm().item<double>() <= kRoundedShare * change.norm().item<double>());
      ++masters;
    }
  }
  CHECK(masters > 0);

  TrainedCopies resumed(execution, adam, kWithMasters);
  resumed.trainer.load(path);
  resumed.train(4);
  CHECK(equal(state_of(resumed.trainer), state));
}

TEST_CASE("a step that is skipped leaves masters as they are",
          "[integration][masters][loss-scale]") {
  ModelOptions model = kHalfModel;
  model.type = c10::ScalarType::Half;
  const Program program = make_program(model);
  constexpr LossScaling kFar{.initial = 0x1p24, .growth_interval = 4};
  TrainerOptions options = kWithMasters;
  options.loss_scaling = kFar;
  ReferenceOptions alike = kLikewise;
  alike.loss_scaling = kFar;
  Trainer trainer(Cluster::local(2), program, "1f1b", AdamW{.lr = 1e-2}, options);
  Reference reference(program, AdamW{.lr = 1e-2}, alike);
  const TensorsByName before = state_of(trainer);
  const Data batch = data(0);
  const StepResult first = trainer.step(batch.inputs, batch.labels).get();
  CHECK(first.skipped);
  CHECK(reference.step(batch.inputs, batch.labels).skipped);
  CHECK(equal(state_of(trainer), before));
  train_both(trainer, reference, 20);
  CHECK_FALSE(equal(state_of(trainer), before));
  check_same_state(trainer, reference);
  CHECK(check_rounded(state_of(trainer)) > 0);
}

TEST_CASE("training with masters differs from training in bfloat16", "[integration][masters]") {
  const Program program = make_program(kHalfModel);
  const auto trained = [&](bool masters) {
    Trainer trainer(Cluster::local(2),
                    program,
                    "1f1b",
                    AdamW{.lr = 1e-4},
                    {.master_weights = masters, .seed = 9});
    for (int step = 0; step < 10; ++step) {
      (void)step_of(trainer, step).get();
    }
    return state_of(trainer);
  };
  const TensorsByName with = trained(true), without = trained(false);
  CHECK(check_rounded(with) > 0);
  for (const auto& [name, tensor] : without) {
    CHECK_FALSE(name.starts_with(kMaster));
    CHECK((!is_of_optimizer(name) || tensor.scalar_type() == at::kBFloat16));
  }
  CHECK_FALSE(at::equal(with.at("weight:layer0.weight"), without.at("weight:layer0.weight")));
}

// ---- state --------------------------------------------------------------------------------------

TEST_CASE("a checkpoint has the masters, for any cut, and only for runs with masters",
          "[integration][masters]") {
  const TemporaryFolder folder;
  const std::string with = folder.path() + "/with.ckpt", without = folder.path() + "/without.ckpt";
  const AdamW adam{.lr = 1e-3};
  const auto trainer_of = [&](int stages, bool masters) {
    ModelOptions model = kHalfModel;
    model.stages = stages;
    TrainerOptions options = kWithMasters;
    options.master_weights = masters;
    return Trainer(Cluster::local(stages), make_program(model), "1f1b", adam, options);
  };
  Trainer unbroken = trainer_of(2, true), resumed = trainer_of(4, true),
          plain = trainer_of(2, false);
  for (int step = 0; step < 4; ++step) {
    (void)step_of(unbroken, step).get();
    if (step == 1) {
      unbroken.save(with);
    }
  }
  resumed.load(with);
  for (int step = 2; step < 4; ++step) {
    (void)step_of(resumed, step).get();
  }
  CHECK(equal(state_of(resumed), state_of(unbroken)));
  (void)step_of(plain, 0).get();
  plain.save(without);
  CHECK_THAT(refusal([&] { plain.load(with); }, Errc::CheckpointMismatch),
             ContainsSubstring("the checkpoint has the masters") &&
                 ContainsSubstring("set master_weights as it was"));
  CHECK_THAT(refusal([&] { resumed.load(without); }, Errc::CheckpointMismatch),
             ContainsSubstring("the checkpoint has no masters") &&
                 ContainsSubstring("set master_weights as it was"));
}

TEST_CASE("masters begin as the weights that are loaded", "[integration][masters]") {
  Trainer trainer(
      Cluster::local(2), make_program(kHalfModel), "1f1b", AdamW{.lr = 1e-3}, kWithMasters);
  const auto check_begun = [&] {
    const TensorsByName state = state_of(trainer);
    CHECK(check_rounded(state) > 0);
    for (const auto& [name, tensor] : state) {
      if (name.starts_with(kMaster)) {
        CAPTURE(name);
        CHECK(at::equal(tensor, tensor.to(at::kBFloat16).to(at::kFloat)));
      }
    }
  };
  check_begun();
  const StateDict first = trainer.state_dict();
  for (int step = 0; step < 3; ++step) {
    (void)step_of(trainer, step).get();
  }
  trainer.load_state_dict(first);
  CHECK(same_bits(trainer.state_dict(), first));
  check_begun();
}

TEST_CASE("a lost rank's masters come from its mirror, also those of a shard",
          "[integration][masters][processes][recovery]") {
  const Program program = make_program(kWideHalfModel);
  TrainerOptions options = kWithMasters;
  options.mirror = true;
  TrainedCopies run(
      in_two_copies(program, Sharing::States), AdamW{.lr = 1e-2}, options, [](int ranks) {
        return Cluster::spawn(ranks);
      });
  run.train(2);
  REQUIRE(kill(static_cast<pid_t>(run.cluster.workers()[3].process), SIGKILL) == 0);
  CHECK(error_of(step_of(run.trainer, 2)).code() == Errc::WorkerLost);
  run.cluster.replace(Rank(3));
  CHECK(run.trainer.recover() >= 1);
  run.train(4);
  TrainedCopies whole(in_two_copies(program, Sharing::Nothing), AdamW{.lr = 1e-2}, kWithMasters);
  whole.train(4);
  CHECK(equal(state_of(run.trainer), state_of(whole.trainer)));
}

TEST_CASE("averages are those of masters, in float32, and another trainer takes them",
          "[integration][masters]") {
  const Program program = make_program(kHalfModel);
  TrainerOptions options = kWithMasters;
  options.average = 0.75;
  ReferenceOptions alike = kLikewise;
  alike.average = 0.75;
  const AdamW adam{.lr = 1e-3};
  Trainer trainer(Cluster::local(2), program, "1f1b", adam, options);
  Reference reference(program, adam, alike);
  at::Tensor expected = state_of(trainer).at("master:layer0.weight");
  CHECK(at::equal(state_of(trainer).at("average:layer0.weight"), expected));
  for (int step = 0; step < 3; ++step) {
    const Data batch = data(step);
    (void)trainer.step(batch.inputs, batch.labels).get();
    (void)reference.step(batch.inputs, batch.labels);
    expected = expected * 0.75 + state_of(trainer).at("master:layer0.weight") * 0.25;
  }
  check_same_state(trainer, reference);
  const StateDict averages = trainer.averages();
  const auto found = std::ranges::find(averages, "layer0.weight", &StateDict::value_type::first);
  REQUIRE(found != averages.end());
  CHECK(found->second.scalar_type() == at::kFloat);
  CHECK(at::equal(found->second, expected));
  Trainer averaged(Cluster::local(2), program, "1f1b", adam, options);
  averaged.load_state_dict(averages);
  CHECK(at::equal(state_of(averaged).at("weight:layer0.weight"), expected.to(at::kBFloat16)));
  options.master_weights = false;
  CHECK_THAT(
      refusal([&] { const Trainer none(Cluster::local(2), program, "1f1b", adam, options); }),
      ContainsSubstring("set master_weights"));
}

TEST_CASE("masters of a model in float32 are refused", "[integration][masters][bad-input]") {
  const Program program = make_program();
  CHECK_THAT(
      refusal([&] { const Trainer none(Cluster::local(2), program, "1f1b", Sgd{}, kWithMasters); }),
      ContainsSubstring("master_weights keeps float32 copies"));
  CHECK_THAT(refusal([&] { const Reference none(program, Sgd{}, kLikewise); }),
             ContainsSubstring("leave it out"));
}

}  // namespace
}  // namespace stagecraft::tests::masters
