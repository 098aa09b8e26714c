/// Tests training with scaled losses: bits, small gradients, skipped steps, checkpoints.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/integration/copies_run.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"

namespace stagecraft::tests {
namespace {

/// So large that gradients in float16 overflow.
constexpr LossScaling kTooLarge{.initial = 0x1p40, .growth_interval = 3};

Program in_float16(const ModelOptions& model) {
  const AutocastGuard autocast;
  AutocastGuard::set({.enabled = true, .dtype = at::kHalf});
  return make_program(model);
}

Trainer trainer_of(const Program& program, const std::optional<LossScaling>& scaling) {
  const Schedule order = make_schedule("1f1b", program);
  return {Cluster::local(static_cast<int>(order.rows().size())),
          program,
          order,
          AdamW{.lr = 1e-2},
          {.clip = 1.0, .loss_scaling = scaling, .seed = 9}};
}

TEST_CASE("in float32 a scaled loss changes no bit", "[integration][loss-scale]") {
  const std::string schedule = GENERATE("1f1b", "zb-h1");
  const Program program = make_program({.stages = 2, .dropout = 0.2});
  const Schedule order = make_schedule(schedule, program);
  const auto weights = [&](const std::optional<LossScaling>& scaling) {
    Trainer trainer(Cluster::local(2),
                    program,
                    order,
                    AdamW{.lr = 1e-2},
                    {.clip = 1.0, .loss_scaling = scaling, .seed = 9});
    for (int step = 0; step < 3; ++step) {
      CHECK_FALSE(step_of(trainer, step).get().skipped);
    }
    return trainer.state_dict();
  };
  CHECK(same_bits(weights(LossScaling{.growth_interval = 1}), weights(std::nullopt)));
}

TEST_CASE(
    "steps whose scaled gradients overflow are skipped until they fit, as in one process (LX-1)",
    "[integration][loss-scale]") {
  const Program program = in_float16({.stages = 2});
  Trainer trainer = trainer_of(program, kTooLarge);
  Reference one(program, AdamW{.lr = 1e-2}, {.clip = 1.0, .loss_scaling = kTooLarge, .seed = 9});
  const StateDict before = weights_of(trainer);
  int skipped = 0;
  double scale = kTooLarge.initial;
  int in_a_row = 0;
  for (int step = 0; step < 40; ++step) {
    const StepResult result = step_of(trainer, step).get();
    const Data batch = data(step);
    const ReferenceStep alone = one.step(batch.inputs, batch.labels);
    CHECK(result.losses == alone.losses);
    CHECK(result.skipped == alone.skipped);
    CHECK(result.step == step + 1);
    CHECK(result.loss_scale == scale);
    if (result.skipped) {
      CHECK_FALSE(std::isfinite(result.gradient_norm));
      ++skipped;
      in_a_row = 0;
      scale /= 2;
    } else {
      CHECK(result.gradient_norm == alone.gradient_norm);
      if (++in_a_row == kTooLarge.growth_interval) {
        in_a_row = 0;
        scale *= 2;
      }
    }
    if (skipped == step + 1) {
      CHECK(same_bits(weights_of(trainer), before));
    }
  }
  CHECK(skipped >= 5);
  CHECK(skipped <= 35);
  CHECK(same_bits(without_spare(weights_of(trainer)), weights_of(one)));
}

TEST_CASE("a run that goes on from a checkpoint keeps its scale", "[integration][loss-scale]") {
  const TemporaryFolder folder;
  const Program program = in_float16({.stages = 2});
  Trainer unbroken = trainer_of(program, kTooLarge);
  const auto train = [](Trainer& trainer, int until) {
    std::vector<double> scales;
    while (trainer.steps() < until) {
      scales.push_back(step_of(trainer, static_cast<int>(trainer.steps())).get().loss_scale);
    }
    return scales;
  };
  (void)train(unbroken, 30);
  unbroken.save(folder.path() + "/a.ckpt");
  const std::vector<double> rest = train(unbroken, 36);
  Trainer other = trainer_of(program, kTooLarge);
  other.load(folder.path() + "/a.ckpt");
  CHECK(train(other, 36) == rest);
  CHECK(same_bits(other.state_dict(), unbroken.state_dict()));
  SECTION("and so does one that goes back to it") {
    unbroken.load(folder.path() + "/a.ckpt");
    CHECK(train(unbroken, 36) == rest);
    CHECK(same_bits(other.state_dict(), unbroken.state_dict()));
  }
  SECTION("a trainer that does not scale keeps it for one that does") {
    Trainer plain = trainer_of(program, std::nullopt);
    plain.load(folder.path() + "/a.ckpt");
    CHECK(step_of(plain, 30).get().loss_scale == 1.0);
    plain.save(folder.path() + "/plain.ckpt");
    other.load(folder.path() + "/plain.ckpt");
    CHECK(step_of(other, 31).get().loss_scale == rest.front());
  }
  SECTION("a checkpoint without a scale begins anew") {
    Trainer plain = trainer_of(program, std::nullopt);
    (void)train(plain, 1);
    plain.save(folder.path() + "/plain.ckpt");
    unbroken.load(folder.path() + "/plain.ckpt");
    CHECK(step_of(unbroken, 1).get().loss_scale == kTooLarge.initial);
  }
}

TEST_CASE("a gradient that is not finite without scaling either is an error",
          "[integration][loss-scale][failure]") {
  Trainer trainer =
      trainer_of(make_program({.stages = 2, .steep = true}), LossScaling{.initial = 4.0});
  CHECK(step_of(trainer, 0).get().skipped);
  CHECK(step_of(trainer, 1).get().skipped);
  CHECK(error_of(step_of(trainer, 2)).code() == Errc::NonFinite);
}

/// Its gradients are too small for float16.
struct Faint : torch::nn::Module {
  torch::nn::Linear below{torch::nn::LinearOptions(8, 8)}, above{torch::nn::LinearOptions(8, 8)};

  Faint() {
    register_module("below", below);
    register_module("above", above);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = stage("below", [&] { return torch::relu(below(x)); });
    return stage("above", [&] { return above(h); });
  }
};

Program faint_in_float16(const torch::Tensor& x, Loss loss) {
  torch::manual_seed(3);
  Faint model;
  const AutocastGuard autocast;
  AutocastGuard::set({.enabled = true, .dtype = at::kHalf});
  return compile(model, {.inputs = {x}, .loss = std::move(loss), .microbatches = 2});
}

TEST_CASE("scaling keeps gradients that are too small for float16", "[integration][loss-scale]") {
  const torch::Tensor x = torch::randn({4, 8});
  const Program program =
      faint_in_float16(x, [](const torch::Tensor& y) { return y.to(torch::kFloat).mean() * 1e-7; });
  const auto norm = [&](const std::optional<LossScaling>& scaling) {
    Trainer trainer(
        Cluster::local(2), program, one_f_one_b(2, 2), Sgd{.lr = 0.1}, {.loss_scaling = scaling});
    return trainer.step({x}, {}).get().gradient_norm;
  };
  CHECK(norm(std::nullopt) == 0.0);
  CHECK(norm(LossScaling{}) > 1e-8);
}

TEST_CASE("a loss in float16 takes a scale that its type can hold", "[integration][loss-scale]") {
  const torch::Tensor x = torch::randn({4, 8});
  const Program program = faint_in_float16(x, [](const torch::Tensor& y) { return y.mean(); });
  Trainer trainer(Cluster::local(2),
                  program,
                  one_f_one_b(2, 2),
                  Sgd{.lr = 0.1},
                  {.loss_scaling = LossScaling{}});
  CHECK(trainer.step({x}, {}).get().skipped);
  CHECK_FALSE(trainer.step({x}, {}).get().skipped);
}

TEST_CASE("copies and accumulated batches skip together, and gradients are those of the step",
          "[integration][loss-scale][replicas]") {
  CopiesRun scaled(Cluster::local(4),
                   {.loss_scaling = LossScaling{.initial = 0x1p64}, .keep_gradients = true},
                   /*clip=*/std::nullopt);
  CopiesRun plain(Cluster::local(4), {.keep_gradients = true}, /*clip=*/std::nullopt);
  for (CopiesRun* run : {&scaled, &plain}) {
    const Data first = data(0);
    (void)run->trainer.accumulate(first.inputs, first.labels);
    CHECK_FALSE(step_of(run->trainer, 1).get().skipped);
  }
  CHECK(same_bits(scaled.trainer.state_dict(), plain.trainer.state_dict()));
  const auto gradients = scaled.trainer.gradients(), expected = plain.trainer.gradients();
  REQUIRE(gradients.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(torch::equal(gradients[i].second, expected[i].second));
  }
  CopiesRun steep(Cluster::local(4), {.loss_scaling = LossScaling{.initial = 0x1p64}});
  CHECK(step_of(steep.trainer, 0).get().loss_scale == 0x1p64);
}

TEST_CASE("a run that recovers has the scale of its state", "[integration][loss-scale][recovery]") {
  const Program program = in_float16({.stages = 2});
  const auto failing = std::make_shared<FailingRank>();
  const auto made = [&](bool fails) {
    TrainerOptions options{.loss_scaling = kTooLarge, .seed = 9, .mirror = true};
    if (fails) {
      options.before_instruction = hook_of(failing);
    }
    return Trainer(
        Cluster::local(2), program, make_schedule("1f1b", program), AdamW{.lr = 1e-2}, options);
  };
  Trainer unbroken = made(false), broken = made(true);
  for (int step = 0; step < 20; ++step) {
    (void)step_of(unbroken, step).get();
    (void)step_of(broken, step).get();
  }
  failing->fail_at(first(broken.plan(), Rank(1), Op::Update));
  CHECK(error_of(step_of(broken, 20)).code() == Errc::WorkerLost);
  const std::int64_t steps = broken.recover();
  CHECK(steps >= 19);
  (void)step_of(unbroken, 20).get();
  while (broken.steps() < 24) {
    const std::int64_t step = broken.steps();
    const StepResult result = step_of(broken, step).get();
    if (step > 20) {
      CHECK(result.loss_scale == step_of(unbroken, step).get().loss_scale);
    }
  }
  CHECK(same_bits(broken.state_dict(), unbroken.state_dict()));
}

TEST_CASE("a scaling that cannot be is refused by name", "[integration][loss-scale][bad-input]") {
  const auto refused = [](const LossScaling& scaling) {
    try {
      (void)trainer_of(make_program({.stages = 2}), scaling);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::UsageArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({.initial = 3.0}), Catch::Matchers::ContainsSubstring("loss_scaling"));
  CHECK_FALSE(refused({.initial = 0.0}).empty());
  CHECK_FALSE(refused({.growth_interval = 0}).empty());
}

}  // namespace
}  // namespace stagecraft::tests
