/// Tests trainers whose ranks own simulated devices: bits, missing waits, wrong devices.
#include <map>
#include <set>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/tests/integration/copies_run.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"

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
  const bool poison = GENERATE(false, true);
  const SimDevices devices({.most_delay = std::chrono::microseconds(50), .poison = poison});
  const std::string schedule = GENERATE("1f1b", "gpipe", "own");
  const ModelOptions model = GENERATE(ModelOptions{.stages = 2, .dropout = 0.2},
                                      ModelOptions{.stages = 4, .statistics = false},
                                      ModelOptions{.stages = 2, .frozen = true},
                                      ModelOptions{.stages = 2, .tied = true});
  CAPTURE(schedule, model.stages, model.tied, poison);
  const Optimizer optimizer = AdamW{.lr = 1e-2};
  const Trained here = trained("cpu", model, schedule, optimizer);
  const Trained there = trained("sim", model, schedule, optimizer);
  CHECK(there.losses == here.losses);
  CHECK(same_bits(there.weights, here.weights));
  CHECK(devices.take_reports() == std::vector<std::string>());
}

TEST_CASE("devices copy batches from pinned memory, if there is any", "[sim]") {
  const bool is_pinned = GENERATE(true, false);
  const SimDevices devices(
      {.most_delay = std::chrono::microseconds(200), .has_pinned_memory = is_pinned});
  const Program program = make_program({.stages = 2});
  const Schedule order = make_schedule("1f1b", program);
  std::map<std::string, std::vector<double>> losses;
  for (const std::string device : {"cpu", "sim"}) {
    Trainer trainer(Cluster::local(2), program, order, AdamW{}, {.seed = 9, .device = device});
    for (int step = 0; step < 3; ++step) {
      const std::int64_t before = SimDevices::pageable_copies();
      const Data batch = data(step);
      StepFuture result = trainer.step(batch.inputs, batch.labels);
      for (const Batch* side : {&batch.inputs, &batch.labels}) {
        for (const BatchTensor& given : *side) {
          given.tensor.zero_();  // it is the caller's again
        }
      }
      losses[device].push_back(result.get().mean_loss);
      if (step > 0 && device == "sim") {  // the first step has the weights
        CHECK((SimDevices::pageable_copies() == before) == is_pinned);
      }
    }
  }
  CHECK(losses["sim"] == losses["cpu"]);
  CHECK(devices.take_reports() == std::vector<std::string>());
}

TEST_CASE("each rank on a device goes forward and backward on its own thread", "[sim]") {
  const SimDevices devices;
  const Program program = make_program({.stages = 2});
  Trainer trainer(Cluster::local(2),
                  program,
                  make_schedule("1f1b", program),
                  AdamW{},
                  {.seed = 9, .device = "sim:0"});
  (void)step_of(trainer, 0).get();
  SimDevices::restart();
  (void)step_of(trainer, 1).get();
  CHECK(SimDevices::issuing_threads() == 2);
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

/// Trains copies of stages, each rank on a device of its own.
struct Copies : CopiesRun {
  explicit Copies(const std::string& device,
                  TrainerOptions options = {},
                  std::optional<double> clip = std::nullopt)
      : CopiesRun(
            Cluster::local(4),
            [&] {
              options.device = device;
              return options;
            }(),
            clip) {}
};

TEST_CASE("copies of a stage on devices sum their gradients as on the CPU", "[sim][replicas]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(50)});
  Copies here("cpu");
  Copies there("sim");
  here.train(3);
  there.train(3);
  CHECK(same_bits(there.trainer.state_dict(), here.trainer.state_dict()));
  CHECK(devices.take_reports() == std::vector<std::string>());
}

TEST_CASE("state of devices is saved, loaded and recovered from mirrors", "[sim][recovery]") {
  const SimDevices devices;
  const TemporaryFolder folder;
  Copies here("cpu");
  here.train(4);
  Copies there("sim", {.mirror = true});
  there.train(2);
  there.trainer.save(folder.path() + "/a.ckpt");
  there.train(3);
  SECTION("loaded on the CPU") {
    Copies other("cpu");
    other.trainer.load(folder.path() + "/a.ckpt");
    other.train(4);
    CHECK(same_bits(other.trainer.state_dict(), here.trainer.state_dict()));
  }
  SECTION("loaded on the devices") {
    there.trainer.load(folder.path() + "/a.ckpt");
    CHECK(there.trainer.steps() == 2);
    there.train(4);
    CHECK(same_bits(there.trainer.state_dict(), here.trainer.state_dict()));
  }
  SECTION("recovered") {
    const std::int64_t steps = there.trainer.recover();
    CHECK(steps >= 2);
    there.train(4);
    CHECK(same_bits(there.trainer.state_dict(), here.trainer.state_dict()));
  }
  CHECK(devices.take_reports() == std::vector<std::string>());
}

TEST_CASE("a clipped norm of devices is that of the CPU up to its rounding", "[sim]") {
  const SimDevices devices;
  const auto norm_of = [](const std::string& device) {
    Copies run(device, {}, /*clip=*/0.1);
    return step_of(run.trainer, 0).get().gradient_norm;
  };
  CHECK(norm_of("sim") == Catch::Approx(norm_of("cpu")).epsilon(1e-12));
}

TEST_CASE("an evaluation on devices has the loss of one on the CPU", "[sim]") {
  const SimDevices devices;
  Copies here("cpu");
  Copies there("sim");
  const Data batch = data(7);
  CHECK(there.trainer.evaluate(batch.inputs, batch.labels) ==
        here.trainer.evaluate(batch.inputs, batch.labels));
  CHECK(devices.take_reports() == std::vector<std::string>());
}

TEST_CASE("a timeline has the times of the devices: nothing ends before what it waits for",
          "[sim]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(200)});
  Copies run("sim", {.record_timeline = true});
  const StepResult result = step_of(run.trainer, 0).get();
  REQUIRE(result.timelines.size() == 4);
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<InstructionTime>& times = result.timelines[static_cast<std::size_t>(rank)];
    const auto& list = run.trainer.plan().list_of(Rank(rank)).instructions;
    REQUIRE(times.size() == list.size());
    std::map<InstructionId, std::int64_t> ends;
    std::set<InstructionId> frees;  // order nothing on a device
    for (std::size_t i = 0; i < list.size(); ++i) {
      CHECK(times[i].start <= times[i].end);
      for (const InstructionId earlier : list[i].waits) {
        if (list[i].op != Op::Free && !frees.contains(earlier)) {
          CHECK(ends.at(earlier) <= times[i].end);
        }
      }
      ends[list[i].id] = times[i].end;
      if (list[i].op == Op::Free) {
        frees.insert(list[i].id);
      }
    }
  }
}

TEST_CASE("a step that fails on a device is taken back, with its running statistics",
          "[sim][failure]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(50)});
  const Program program = make_program({.stages = 2});
  const Schedule order = make_schedule("1f1b", program);
  const auto failing = std::make_shared<FailingRank>();
  const Cluster cluster = Cluster::local(2);
  const auto made = [&](const std::string& device,
                        std::function<void(Rank, const Instruction&)> hook) {
    TrainerOptions options{.seed = 9, .device = device};
    options.before_instruction = std::move(hook);
    return Trainer(cluster, program, order, AdamW{.lr = 1e-2}, options);
  };
  Trainer there = made("sim", hook_of(failing));
  (void)step_of(there, 0).get();
  failing->fail_at(first(there.plan(), Rank(1), Op::Vote));
  CHECK(error_of(step_of(there, 1)).code() == Errc::WorkerFailed);
  Trainer here = made("cpu", {});
  for (int step = 0; step < 3; ++step) {
    (void)step_of(here, step).get();
  }
  for (int step = 1; step < 3; ++step) {
    (void)step_of(there, step).get();
  }
  CHECK(same_bits(there.state_dict(), here.state_dict()));
  CHECK(devices.take_reports() == std::vector<std::string>());
}

TEST_CASE("a step that runs out of a device's memory fails, and the next one goes on",
          "[sim][failure]") {
  const SimDevices devices;
  Copies here("cpu");
  Copies there("sim");
  here.train(3);
  there.train(1);
  SimDevices::restart({.memory = 4096});
  const Error error = error_of(step_of(there.trainer, 1));
  CHECK(error.code() == Errc::DeviceOutOfMemory);
  CHECK_THAT(error.what(),
             ContainsSubstring("stage") && ContainsSubstring("bytes left, and ") &&
                 ContainsSubstring("are asked for"));
  SimDevices::restart({});
  there.train(3);
  CHECK(same_bits(there.trainer.state_dict(), here.trainer.state_dict()));
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
  CHECK_THAT(refusal("sim:4"), ContainsSubstring("has 4 of these"));
  CHECK_THAT(refusal("meta"), ContainsSubstring("has none of these"));
  CHECK_THAT(refusal("quantum"), ContainsSubstring("found \"quantum\""));
}

}  // namespace
}  // namespace stagecraft::tests
