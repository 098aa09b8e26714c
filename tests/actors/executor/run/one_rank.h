/// A rank alone, on the test's thread, with all parts that its steps share. The test does the
/// driver's part.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/executor/run/rank_programs.h"
#include "stagecraft/actors/executor/run/running_step.h"
#include "stagecraft/actors/executor/run/step_loop.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::testing {

inline constexpr int kOneRankMicrobatches = 2;

class OneRank {
 public:
  OneRank(const Program& program,
          const Schedule& schedule,
          const TrainerOptions& options = {},
          std::unique_ptr<Device> device = cpu_device(),
          const Optimizer& optimizer = Sgd{.lr = 0.1})
      : program_(program),
        plan_(std::make_shared<const Plan>(
            lower_schedule(program, schedule, Layout::of(schedule), /*training=*/true))),
        setup(rank_setup({.plan_id = {},
                          .program = program.shared(),
                          .train = plan_,
                          .optimizer = optimizer,
                          .options = options},
                         Rank(0))),
        device_(std::move(device)) {
    set_own_thread_count(1);
    for (StageRuntime& stage : programs.trained()) {
      stage.load(initial_state(program.compiled().graph));
    }
  }

  /// Sends the inputs and labels of the step, as the driver does.
  void feed(const Batch& inputs, const Batch& labels, const StepOrder& order) {
    const CompiledProgram& compiled = program_.compiled();
    const auto x = split_batch(inputs, compiled.inputs, compiled.microbatches, "input");
    const auto y = split_batch(labels, compiled.labels, compiled.microbatches, "label");
    for (const Feed& feed : plan_->feeds) {
      const auto& of_kind = feed.label ? y : x;
      network_.endpoint(kDriver)->send(
          feed.to,
          {.epoch = order.epoch,
           .submission = order.submission,
           .edge = feed.edge,
           .microbatch = feed.microbatch},
          of_kind[feed.microbatch.index()][static_cast<std::size_t>(feed.position)]);
    }
  }

  /// Makes the step ready to run. The order outlives it.
  [[nodiscard]] RunningStep begin(const StepOrder& order) {
    RunningStep step{order, programs.at(order.program), setup.train.tables->microbatches};
    times_.begin_step();
    commit.begin_step(order, {.epoch = order.epoch, .submission = order.submission});
    step.plan.slots.begin_step();
    step.plan.transfers.begin({.epoch = order.epoch, .submission = order.submission});
    return step;
  }

  /// Runs a whole step. Returns its losses.
  std::vector<MicrobatchLoss> run(const StepOrder& order,
                                  const Batch& inputs,
                                  const Batch& labels,
                                  TimelineRecorder* recorder = nullptr) {
    feed(inputs, labels, order);
    RunningStep step = begin(order);
    StepLoop(parts, step, recorder).run();
    return step.losses.read();
  }

  [[nodiscard]] StepTimes& times() { return times_; }
  [[nodiscard]] const Plan& plan() const { return *plan_; }

 private:
  const Program program_;
  const std::shared_ptr<const Plan> plan_;
  InprocNetwork network_{1};

 public:
  RankSetup setup;
  const std::shared_ptr<Transport> transport = network_.endpoint(Rank(0));

 private:
  const std::unique_ptr<Device> device_;
  StepTimes times_{*device_, setup.train.list->instructions.size()};
  Progress progress_;
  StepValues values_;
  TransportCollective collective_{transport};

 public:
  RankPrograms programs{setup, device_->place(), transport, std::make_shared<WaitBoard>()};
  Commit commit{setup, collective_, *Clock::steady(), times_, programs.trained(), nullptr};
  Exchanges exchanges{setup.train, collective_};
  const RankParts parts{.setup = setup,
                        .transport = *transport,
                        .device = *device_,
                        .progress = progress_,
                        .values = values_,
                        .times = times_,
                        .commit = commit,
                        .exchanges = exchanges,
                        .trained = programs.trained()};
};

/// A program of a chain of stages, with its batch.
struct SmallChain {
  Batch inputs, labels;
  Program program;
};

inline SmallChain small_chain(int stages) {
  torch::manual_seed(4);
  Chain module(stages);
  const Batch inputs{torch::randn({4, 8})}, labels{torch::randn({4, 8})};
  return {inputs,
          labels,
          compile(module,
                  {.inputs = inputs,
                   .labels = labels,
                   .loss = mean_square,
                   .microbatches = kOneRankMicrobatches})};
}

}  // namespace stagecraft::testing
