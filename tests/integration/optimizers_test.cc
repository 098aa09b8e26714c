/// Tests optimizers, parameter groups, learning rates and gradients of a trainer: as in one
/// process, bit by bit, and refused if they make no sense.
#include <algorithm>
#include <cmath>
#include <limits>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Steps in the direction of a running mean of signs.
CustomOptimizer signs() {
  return {.lr = 1e-2,
          .weight_decay = 0.1,
          .name = "signs",
          .state = {"mean"},
          .update = [](const CustomUpdate& u) {
            u.state[0].mul_(0.9).add_(u.gradient.sign(), 0.1);
            u.parameter.mul_(1.0 - u.learning_rate * u.weight_decay);
            u.parameter.add_(u.state[0], -u.learning_rate);
          }};
}

/// Returns every optimizer of the table, with all state that it may keep, and a callable.
std::vector<Optimizer> optimizers() {
  std::vector<Optimizer> all;
  for (const OptimizerInfo& info : kOptimizers) {
    Optimizer& optimizer = all.emplace_back(optimizer_named(info.name).value());
    for (const auto& [setting, value] : {std::pair("lr", 1e-2),
                                         std::pair("weight_decay", 0.1),
                                         std::pair("momentum", 0.5),
                                         std::pair("amsgrad", 1.0),
                                         std::pair("centered", 1.0),
                                         std::pair("lr_decay", 0.1),
                                         std::pair("initial_accumulator_value", 0.5)}) {
      (void)set_setting(optimizer, setting, value);  // of those that have it
    }
  }
  all.emplace_back(signs());
  return all;
}

const std::vector<ParameterGroup> kGroups{
    {.match = "layer0.*", .frozen = true},
    {.match = "*.bias", .lr = 3e-2, .weight_decay = 0.0},
    {.match = "layer?.weight", .lr_scale = 0.5, .frozen_for = 1}};

double falling(std::int64_t step) {
  return 1e-2 / static_cast<double>(step + 1);
}

const TrainerOptions kOptions{.learning_rate = {.of_step = falling},
                              .groups = kGroups,
                              .decay_on = DecayOn::Matrices,
                              .clip = 0.1,
                              .keep_gradients = true,
                              .seed = 5};
const ReferenceOptions kReferenceOptions{.learning_rate = kOptions.learning_rate,
                                         .groups = kOptions.groups,
                                         .decay_on = kOptions.decay_on,
                                         .clip = kOptions.clip,
                                         .keep_gradients = true,
                                         .seed = 5};

/// Returns the gradient of each parameter once, as the trainer gives them.
StateDict gradients_of(const Reference& reference, const Program& program) {
  StateDict result;
  for (const std::string& name : program.parameter_names()) {
    const std::vector<StateTensor> all = reference.gradients();
    const auto found = std::ranges::find(all, name, &StateTensor::name);
    if (found != all.end()) {
      result.emplace_back(name, found->tensor);
    }
  }
  return result;
}

at::Tensor named(const StateDict& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &StateDict::value_type::first);
  return found == all.end() ? at::Tensor() : found->second;
}

void check_equal_to_one_process(const Cluster& cluster,
                                const ModelOptions& model,
                                const Optimizer& optimizer,
                                const TrainerOptions& options,
                                const ReferenceOptions& reference_options) {
  INFO(optimizer_name(optimizer));
  const Program program = make_program(model);
  Trainer trainer(cluster, program, make_schedule("1f1b", program), optimizer, options);
  Reference reference(program, optimizer, reference_options);
  for (int i = 0; i < 3; ++i) {
    const Data batch = data(i);
    const StepResult pipelined = trainer.step(batch.inputs, batch.labels).get();
    const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
    CHECK(pipelined.losses == expected.losses);
    CHECK(testing::same_norm(pipelined.gradient_norm, expected.gradient_norm));
    CHECK(pipelined.learning_rate == expected.learning_rate);
  }
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
  CHECK(same_bits(trainer.gradients(), gradients_of(reference, program)));
}

TEST_CASE("every optimizer with groups, decay, clipping and a rate of its own equals one process",
          "[integration][optimizers]") {
  const Cluster cluster = Cluster::local(4);
  for (const Optimizer& optimizer : optimizers()) {
    check_equal_to_one_process(
        cluster, {.dropout = 0.2, .tied = true}, optimizer, kOptions, kReferenceOptions);
  }
  check_equal_to_one_process(cluster,
                             {.stages = 4, .dropout = 0.2, .tied = true},
                             RMSprop{.lr = 1e-2},
                             kOptions,
                             kReferenceOptions);
}

TEST_CASE("gradients clipped by value equal one process and PyTorch's clip_grad_value_",
          "[integration][optimizers]") {
  const Program program = make_program({.tied = true});
  constexpr double kMost = 1e-3;
  check_equal_to_one_process(Cluster::local(2),
                             {.tied = true},
                             AdamW{.lr = 1e-2},
                             {.groups = kGroups, .clip_value = kMost, .keep_gradients = true},
                             {.groups = kGroups, .clip_value = kMost, .keep_gradients = true});
  Trainer trainer(Cluster::local(2),
                  program,
                  "1f1b",
                  Sgd{.lr = 1.0},
                  {.clip_value = kMost, .keep_gradients = true});
  const StateDict before = trainer.state_dict();
  (void)step_of(trainer, 0).get();
  const StateDict after = trainer.state_dict();
  bool limits = false;
  for (const auto& [name, gradient] : trainer.gradients()) {
    INFO(name);
    CHECK(named(after, name).equal(named(before, name) - gradient.clamp(-kMost, kMost)));
    limits = limits || gradient.abs().max().item<double>() > kMost;
  }
  CHECK(limits);
}

TEST_CASE("so it does where ranks are processes, and a callable is refused there by its name",
          "[integration][optimizers][processes]") {
  const Cluster cluster = Cluster::spawn(2);
  check_equal_to_one_process(
      cluster, {.tied = true}, Adagrad{.lr = 1e-2}, kOptions, kReferenceOptions);
  const Program program = make_program();
  const auto message = refusal(
      [&] { const Trainer trainer(cluster, program, make_schedule("1f1b", program), signs()); });
  CHECK_THAT(message, ContainsSubstring("the optimizer \"signs\" is a callable of this process"));
}

TEST_CASE("PG-2: what is frozen does not change, counts in no norm and has no gradient and state",
          "[integration][optimizers]") {
  const Cluster cluster = Cluster::local(2);
  const Program program = make_program();
  const Schedule schedule = make_schedule("1f1b", program);
  const TemporaryFolder folder;
  const Data batch = data(0);
  Trainer whole(cluster, program, schedule, AdamW{.lr = 1e-2}, {.keep_gradients = true});
  TrainerOptions options{
      .groups = {{.match = "embed.*", .frozen = true}, {.match = "layer?.*", .frozen = true}},
      .keep_gradients = true};
  Trainer part(cluster, program, schedule, AdamW{.lr = 1e-2}, options);
  const StateDict before = part.state_dict();
  const StepResult all = whole.step(batch.inputs, batch.labels).get();
  const StepResult some = part.step(batch.inputs, batch.labels).get();
  CHECK(some.losses == all.losses);
  const StateDict gradients = part.gradients();
  double square = 0.0;
  for (const auto& [name, gradient] : gradients) {
    CHECK_THAT(name, !ContainsSubstring("embed") && !ContainsSubstring("layer"));
    CHECK(gradient.equal(named(whole.gradients(), name)));
    square += gradient.square().sum().item<double>();
  }
  CHECK(gradients.size() == 4);  // of norm and head
  CHECK(some.gradient_norm == Catch::Approx(std::sqrt(square)).epsilon(1e-6));
  CHECK(some.gradient_norm < 0.9 * all.gradient_norm);
  for (const auto& [name, weight] : part.state_dict()) {
    const bool same = weight.equal(named(before, name));
    CHECK(same == (name.starts_with("embed") || name.starts_with("layer") || name == "spare"));
  }
  const std::string path = folder.path() + "/part.ckpt";
  part.save(path);
  CHECK_THAT(refusal([&] { whole.load(path); }, Errc::CheckpointMismatch),
             ContainsSubstring("frozen parameters"));
  Trainer again(cluster, program, schedule, AdamW{.lr = 1e-2}, options);
  again.load(path);
  CHECK(same_bits(again.state_dict(), part.state_dict()));
}

TEST_CASE("PG-3: a group is frozen for its first updates, then begins like a new one",
          "[integration][optimizers]") {
  const Program program = make_program();
  const AdamW adam{.lr = 1e-2, .weight_decay = 0.0};
  const auto options = [](ParameterGroup group) {
    return TrainerOptions{.groups = {std::move(group)}, .clip = 0.1, .seed = 5};
  };
  Trainer thawed(
      Cluster::local(2), program, "1f1b", adam, options({.match = "layer0.*", .frozen_for = 2}));
  Trainer frozen(
      Cluster::local(2), program, "1f1b", adam, options({.match = "layer0.*", .frozen = true}));
  Reference reference(
      program, adam, {.groups = {{.match = "layer0.*", .frozen_for = 2}}, .clip = 0.1, .seed = 5});
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  for (int i = 0; i < 4; ++i) {
    const StateDict before = thawed.state_dict();
    const Data batch = data(i);
    const StepResult step = thawed.step(batch.inputs, batch.labels).get();
    CHECK(step.losses == reference.step(batch.inputs, batch.labels).losses);
    CHECK(same_bits(weights_of(thawed), weights_of(reference)));
    if (i < 2) {
      CHECK(step_of(frozen, i).get().gradient_norm == step.gradient_norm);
      CHECK(same_bits(thawed.state_dict(), frozen.state_dict()));
      thawed.save(path);
    } else if (i == 2) {
      const at::Tensor moved =
          named(thawed.state_dict(), "layer0.weight") - named(before, "layer0.weight");
      CHECK(moved.abs().max().item<double>() == Catch::Approx(1e-2).epsilon(1e-2));
    }
  }
  Trainer resumed(
      Cluster::local(2), program, "1f1b", adam, options({.match = "layer0.*", .frozen_for = 2}));
  resumed.load(path);
  for (int i = 2; i < 4; ++i) {
    (void)step_of(resumed, i).get();
  }
  CHECK(same_bits(resumed.state_dict(), thawed.state_dict()));
}

TEST_CASE("BU-8: averages follow the weights, for every cut, over a checkpoint, into an evaluation",
          "[integration][optimizers]") {
  constexpr double kDecay = 0.75;
  const Cluster cluster = Cluster::local(4);
  const TrainerOptions options{
      .groups = {{.match = "layer0.*", .frozen = true}}, .average = kDecay, .seed = 5};
  const auto trainer_of = [&](int stages) {
    return Trainer(cluster, make_program({.stages = stages}), "1f1b", AdamW{.lr = 1e-2}, options);
  };
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Trainer trainer = trainer_of(2), resumed = trainer_of(4);
  const std::vector<std::string> trained = make_program().parameter_names();
  StateDict expected = trainer.state_dict();
  CHECK(same_bits(trainer.averages(), expected));
  for (int i = 0; i < 3; ++i) {
    (void)step_of(trainer, i).get();
    for (auto& [name, average] : expected) {
      const at::Tensor weight = named(trainer.state_dict(), name);
      const bool follows = std::ranges::count(trained, name) > 0 && !name.starts_with("layer0");
      average = follows && name != "spare" ? average * kDecay + weight * (1.0 - kDecay) : weight;
    }
    if (i == 1) {
      trainer.save(path);
    }
  }
  CHECK(same_bits(trainer.averages(), expected));
  CHECK_FALSE(same_bits(trainer.state_dict(), expected));
  resumed.load(path);
  (void)step_of(resumed, 2).get();
  CHECK(same_bits(resumed.averages(), expected));

  Trainer averaged = trainer_of(2);
  averaged.load_state_dict(trainer.averages());
  CHECK(same_bits(averaged.state_dict(), expected));
  CHECK(same_bits(averaged.averages(), expected));  // they begin again
  const Data batch = data(0);
  CHECK(averaged.evaluate(batch.inputs, batch.labels) !=
        trainer.evaluate(batch.inputs, batch.labels));

  Trainer without(cluster, make_program(), "1f1b", AdamW{}, {.groups = options.groups, .seed = 5});
  CHECK_THAT(refusal([&] { (void)without.averages(); }),
             ContainsSubstring("set TrainerOptions::average"));
  CHECK_THAT(refusal([&] { without.load(path); }, Errc::CheckpointMismatch),
             ContainsSubstring("or averages: it has average "));
}

TEST_CASE("a checkpoint has every optimizer's state, for any cut", "[integration][optimizers]") {
  const Cluster cluster = Cluster::local(4);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const auto trainer_of = [&](const Optimizer& optimizer, int stages) {
    const Program program = make_program({.stages = stages});
    TrainerOptions options = kOptions;
    options.mirror = true;
    return Trainer(cluster, program, make_schedule("1f1b", program), optimizer, options);
  };
  for (const Optimizer& optimizer : optimizers()) {
    INFO(optimizer_name(optimizer));
    Trainer unbroken = trainer_of(optimizer, 2);
    for (int i = 0; i < 4; ++i) {
      (void)step_of(unbroken, i).get();
      if (i == 1) {
        unbroken.save(path);
      }
    }
    Trainer resumed = trainer_of(optimizer, 4);
    resumed.load(path);
    for (int i = 2; i < 4; ++i) {
      CHECK(step_of(resumed, i).get().learning_rate == falling(i));
    }
    CHECK(same_bits(resumed.state_dict(), unbroken.state_dict()));
  }
  Trainer other = trainer_of(Sgd{}, 2);
  CHECK_THAT(refusal([&] { other.load(path); }, Errc::CheckpointMismatch),
             ContainsSubstring("of the optimizer signs, and this training uses sgd"));
}

TEST_CASE("a rate that was set holds for the steps asked for from then on",
          "[integration][optimizers]") {
  const Program program = make_program();
  Trainer trainer(Cluster::local(2),
                  program,
                  make_schedule("1f1b", program),
                  Sgd{.lr = 0.5},
                  {.learning_rate = {.warmup = 2}, .outstanding = 4});
  StepFuture first = step_of(trainer, 0);
  trainer.set_learning_rate(0.125);
  StepFuture second = step_of(trainer, 1);
  trainer.set_learning_rate(0.0);
  StepFuture third = step_of(trainer, 2);
  trainer.set_learning_rate(std::nullopt);
  StepFuture fourth = step_of(trainer, 3);
  CHECK(first.get().learning_rate == 0.25);
  CHECK(second.get().learning_rate == 0.125);
  CHECK(third.get().learning_rate == 0.0);
  CHECK(fourth.get().learning_rate == 0.5);
  for (const double wrong : {-1.0, std::nan("")}) {
    CHECK_THAT(refusal([&] { trainer.set_learning_rate(wrong); }),
               ContainsSubstring("a learning rate is a number from 0 on"));
  }
}

TEST_CASE("a largest norm that was set holds for the steps asked for from then on",
          "[integration][optimizers]") {
  const Program program = make_program();
  Trainer trainer(Cluster::local(2), program, "1f1b", Sgd{.lr = 0.5}, {.clip = 0.01, .seed = 5});
  Reference reference(program, Sgd{.lr = 0.5}, {.clip = 0.01, .seed = 5});
  const std::vector<std::optional<double>> norms{
      0.005, std::numeric_limits<double>::infinity(), std::nullopt};
  for (std::size_t i = 0; i <= norms.size(); ++i) {
    const StateDict before = trainer.state_dict();
    const Data batch = data(static_cast<int>(i));
    const double norm = trainer.step(batch.inputs, batch.labels).get().gradient_norm;
    (void)reference.step(batch.inputs, batch.labels);
    CHECK(same_bits(weights_of(trainer), weights_of(reference)));
    double moved = 0.0;
    for (const auto& [name, weight] : trainer.state_dict()) {
      if (std::ranges::count(program.parameter_names(), name) > 0) {
        moved += (weight - named(before, name)).square().sum().item<double>();
      }
    }
    const double most = i == 0 ? 0.01 : norms[i - 1].value_or(0.01);
    CHECK(norm > 0.01);
    CHECK(std::sqrt(moved) == Catch::Approx(0.5 * std::min(norm, most)).epsilon(1e-2));
    if (i < norms.size()) {
      trainer.set_clip(norms[i]);
      reference.set_clip(norms[i]);
    }
  }
  for (const double wrong : {0.0, -1.0, std::nan("")}) {
    CHECK_THAT(refusal([&] { trainer.set_clip(wrong); }), ContainsSubstring("is above 0"));
    refusal([&] { reference.set_clip(wrong); });
  }
  Trainer by_value(Cluster::local(2), program, "1f1b", Sgd{}, {.clip_value = 1.0});
  CHECK_THAT(refusal([&] { by_value.set_clip(1.0); }), ContainsSubstring("clip_value"));
}

TEST_CASE("a step whose rate cannot be had fails alone, and may be made again",
          "[integration][optimizers]") {
  const Program program = make_program();
  int calls = 0;
  const auto rate = [&calls](std::int64_t step) {
    if (++calls == 2) {
      throw std::runtime_error("the table of rates is away");
    }
    return calls == 3 ? -1.0 : 0.1 / static_cast<double>(step + 1);
  };
  Trainer trainer(Cluster::local(2),
                  program,
                  make_schedule("1f1b", program),
                  Sgd{},
                  {.learning_rate = {.of_step = rate}});
  CHECK(step_of(trainer, 0).get().learning_rate == 0.1);
  const StateDict before = trainer.state_dict();
  CHECK_THROWS_WITH(step_of(trainer, 1).get(), ContainsSubstring("the table of rates is away"));
  CHECK_THAT(refusal([&] { (void)step_of(trainer, 1).get(); }), ContainsSubstring("not -1"));
  CHECK(same_bits(trainer.state_dict(), before));
  CHECK(step_of(trainer, 1).get().learning_rate == 0.05);
  CHECK(trainer.steps() == 2);
}

TEST_CASE("gradients are those of the last step, and asked for in vain before it",
          "[integration][optimizers]") {
  const Program program = make_program();
  const Schedule schedule = make_schedule("1f1b", program);
  const Cluster cluster = Cluster::local(2);
  Trainer without(cluster, program, schedule, Sgd{});
  (void)step_of(without, 0).get();
  CHECK_THAT(refusal([&] { (void)without.gradients(); }),
             ContainsSubstring("set TrainerOptions::keep_gradients"));

  Trainer trainer(cluster, program, schedule, Sgd{}, {.clip = 1e-3, .keep_gradients = true});
  CHECK_THAT(refusal([&] { (void)trainer.gradients(); }), ContainsSubstring("before a step"));
  const StepResult step = step_of(trainer, 0).get();
  const StateDict gradients = trainer.gradients();
  double square = 0.0;
  for (const auto& [name, gradient] : gradients) {
    square += gradient.square().sum().item<double>();
  }
  CHECK(step.gradient_norm == Catch::Approx(std::sqrt(square)).epsilon(1e-6));  // not clipped
  const Data wrong = data_with_bad_token();
  CHECK_THROWS(trainer.step(wrong.inputs, wrong.labels).get());
  const Data batch = data(1);
  (void)trainer.evaluate(batch.inputs, batch.labels);
  CHECK(same_bits(trainer.gradients(), gradients));  // of the last step that updated

  const TemporaryFolder folder;
  trainer.save(folder.path() + "/a.ckpt");
  trainer.load(folder.path() + "/a.ckpt");
  CHECK_THAT(refusal([&] { (void)trainer.gradients(); }), ContainsSubstring("before a step"));
}

TEST_CASE("gradients of replicas come once", "[integration][optimizers]") {
  const Program program = make_program({.statistics = false});
  Trainer trainer(
      Cluster::local(2), program, dualpipe(2, kMicrobatches), Sgd{}, {.keep_gradients = true});
  Reference reference(program, Sgd{}, {});
  const Data batch = data(0);
  (void)trainer.step(batch.inputs, batch.labels).get();
  (void)reference.step(batch.inputs, batch.labels);
  const StateDict found = trainer.gradients();
  const StateDict expected = gradients_of(reference, program);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {  // replicas sum in another order
    CHECK(found[i].first == expected[i].first);
    CHECK(at::allclose(found[i].second, expected[i].second, 1e-5, 1e-6));
  }
}

TEST_CASE("groups and optimizers that cannot be had make no trainer", "[integration][optimizers]") {
  const Program program = make_program();
  const auto refused = [&](const Optimizer& optimizer, std::vector<ParameterGroup> groups) {
    return refusal([&] {
      const Trainer trainer(Cluster::local(2),
                            program,
                            make_schedule("1f1b", program),
                            optimizer,
                            {.groups = groups});
    });
  };
  CHECK_THAT(refused(Sgd{}, {{.match = "embd.weight", .frozen = true}}),
             ContainsSubstring("did you mean embed.weight?"));
  CHECK_THAT(refused(Sgd{}, {{.match = "*", .lr_scale = -1.0}}), ContainsSubstring("lr_scale"));
  CHECK_THAT(refused(CustomOptimizer{}, {}), ContainsSubstring("update is empty"));
  CHECK_THAT(refusal([&] { Reference(program, Sgd{}, {.groups = {{.match = "nobody"}}}); }),
             ContainsSubstring("no parameter matches"));
}

}  // namespace
}  // namespace stagecraft::tests
