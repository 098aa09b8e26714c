/// Tests the ground truth: a pipelined run equals one process, bit for bit.
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kSteps = 3;

void check_equal_to_one_process(const ModelOptions& model,
                                const std::string& schedule,
                                const Optimizer& optimizer,
                                std::optional<double> clip) {
  const Program program = make_program(model);
  Cluster cluster = Cluster::local(model.stages);
  Trainer trainer(cluster,
                  program,
                  make_schedule(schedule, program),
                  optimizer,
                  {.learning_rate = {.warmup = 2}, .clip = clip, .seed = 5});
  Reference reference(
      program, optimizer, {.learning_rate = {.warmup = 2}, .clip = clip, .seed = 5, .threads = 1});
  for (int i = 0; i < kSteps; ++i) {
    const Data batch = data(i);
    const StepResult pipelined = trainer.step(batch.inputs, batch.labels).get();
    const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
    CHECK(pipelined.step == i + 1);
    CHECK(pipelined.losses == expected.losses);
    CHECK(pipelined.mean_loss == expected.mean_loss);
    CHECK(testing::same_norm(pipelined.gradient_norm, expected.gradient_norm));
  }
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
}

TEST_CASE("a pipelined run equals one process bit by bit, for every cut and schedule",
          "[integration][equality]") {
  const int stages = GENERATE(1, 2, 4);
  const auto schedule = GENERATE("gpipe", "1f1b", "own");
  CAPTURE(stages, schedule);
  check_equal_to_one_process({.stages = stages}, schedule, AdamW{.lr = 1e-2}, std::nullopt);
}

TEST_CASE("a frozen backbone trains by a schedule that lists backwards for it too",
          "[integration][equality][surplus]") {
  const int stages = GENERATE(2, 4);
  const ModelOptions model{.stages = stages, .dropout = 0.2, .frozen = true};
  const Program program = make_program(model);
  const CheckResult checked = check(program, make_schedule("own", program));
  CHECK(checked.ok());
  CHECK_THAT(checked.grid,
             ContainsSubstring("(0B0)") && ContainsSubstring("tasks do nothing") &&
                 ContainsSubstring("(no backward)"));
  check_equal_to_one_process(model, "own", AdamW{.lr = 1e-2}, 0.5);
}

TEST_CASE("with clipping, dropout and another optimizer it still does", "[integration][equality]") {
  const int stages = GENERATE(1, 2, 4);
  CAPTURE(stages);
  check_equal_to_one_process({.stages = stages, .dropout = 0.2},
                             "1f1b",
                             Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01},
                             0.5);
}

TEST_CASE("parameters of several stages train as in one process, wherever their stages are",
          "[integration][equality][ties]") {
  const int stages = GENERATE(2, 4);
  const auto schedule = GENERATE("1f1b", "own");
  CAPTURE(stages, schedule);
  check_equal_to_one_process(
      {.stages = stages, .dropout = 0.2, .tied = true}, schedule, AdamW{.lr = 1e-2}, 0.1);
}

TEST_CASE("clipping by the whole model's norm gives the same bits for every cut",
          "[integration][equality]") {
  std::vector<StateDict> weights;
  for (const int stages : {1, 2, 4}) {
    const Program program = make_program({.stages = stages, .dropout = 0.1});
    Cluster cluster = Cluster::local(stages);
    Trainer trainer(
        cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2}, {.clip = 0.1});
    for (int i = 0; i < kSteps; ++i) {
      const StepResult result = trainer.step(data(i).inputs, data(i).labels).get();
      CHECK(result.gradient_norm > 0.1);  // so that clipping has an effect
    }
    weights.push_back(trainer.state_dict());
  }
  CHECK(same_bits(weights[0], weights[1]));
  CHECK(same_bits(weights[0], weights[2]));
}

}  // namespace
}  // namespace stagecraft::tests
