/// Tests trainers whose ranks own simulated devices: bits, missing waits, wrong devices.
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/sim/sim_test.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Trained {
  StateDict weights;
  std::vector<double> losses;
};

/// Trains three steps. `device`: of all ranks.
Trained trained(const std::string& device,
                const ModelOptions& model,
                const std::string& schedule,
                const Optimizer& optimizer) {
  const Program program = make_program(model);
  const Schedule order = make_schedule(schedule, program);
  const Cluster cluster = Cluster::local(static_cast<int>(order.rows().size()));
  Trainer trainer(cluster, program, order, optimizer, {.seed = 9, .device = device});
  Trained result;
  for (int step = 0; step < 3; ++step) {
    for (const double loss : step_of(trainer, step).get().losses) {
      result.losses.push_back(loss);
    }
  }
  result.weights = trainer.state_dict();
  return result;
}

TEST_CASE("ranks on devices train with the bits of ranks on the CPU", "[sim]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(50)});
  const std::string schedule = GENERATE("1f1b", "gpipe", "own");
  const ModelOptions model = GENERATE(ModelOptions{.stages = 2, .dropout = 0.2},
                                      ModelOptions{.stages = 4, .statistics = false},
                                      ModelOptions{.stages = 2, .frozen = true},
                                      ModelOptions{.stages = 2, .tied = true});
  CAPTURE(schedule, model.stages, model.tied);
  const Optimizer optimizer = AdamW{.lr = 1e-2};
  const Trained here = trained("cpu", model, schedule, optimizer);
  const Trained there = trained("sim", model, schedule, optimizer);
  CHECK(there.losses == here.losses);
  CHECK(same_bits(there.weights, here.weights));
  CHECK(devices.take_reports() == std::vector<std::string>());
}

TEST_CASE("every optimizer updates on a device as on the CPU", "[sim]") {
  const SimDevices devices;
  const Optimizer optimizer = GENERATE(Optimizer(Sgd{.lr = 0.1, .momentum = 0.9}),
                                       Optimizer(Adam{.lr = 1e-2, .amsgrad = true}),
                                       Optimizer(Adagrad{.lr = 1e-2}),
                                       Optimizer(RMSprop{.lr = 1e-3}));
  CAPTURE(optimizer_name(optimizer));
  const ModelOptions model{.stages = 2};
  CHECK(same_bits(trained("sim", model, "1f1b", optimizer).weights,
                  trained("cpu", model, "1f1b", optimizer).weights));
  CHECK(devices.take_reports().empty());
}

TEST_CASE("a device that does not exist is refused with what there is", "[sim][bad-input]") {
  const SimDevices devices;
  const auto refusal = [](const std::string& device) {
    try {
      (void)trained(device, {.stages = 2}, "1f1b", AdamW{});
    } catch (const Error& error) {
      CHECK(error.code() == Errc::UsageArgument);
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  CHECK_THAT(refusal("cuda"), ContainsSubstring("cuda") && ContainsSubstring("has none of these"));
  CHECK_THAT(refusal("sim:4"), ContainsSubstring("has 4 of these"));
  CHECK_THAT(refusal("quantum"), ContainsSubstring("\"cuda:1\", not \"quantum\""));
}

}  // namespace
}  // namespace stagecraft::tests
