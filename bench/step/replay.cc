/// How long does a captured stage take, compared with the module that it was captured from?
///
/// This program runs forward and backward of one microbatch, on one thread, in turns: the module by
/// itself, and the model as one stage.
///
///   replay
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/base/median.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/bench/step/measured_model.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::replay {
namespace {

constexpr int kWarmUp = 3, kRounds = 25;

/// Replay runs the whole model as a rank does.
class Replay {
 public:
  explicit Replay(const MeasuredModel& model)
      : program_(model.compile()), stage_(program_.compiled().partition.stages.front(), Sgd{}) {
    stage_.load(initial_state(program_.compiled().graph));
    for (const StageInput& input : stage_.program->inputs) {
      const auto& from =
          input.source == StageInput::Source::Label ? model.one_label : model.one_input;
      inputs_.push_back(from[static_cast<std::size_t>(input.position)]);
    }
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  void run() const {
    SavedStage saved;
    (void)stage_.forward(stage_.whole(), inputs_, /*keeps_graphs=*/true, {}, saved);
    (void)stage_.backward(CellKind::Backward,
                          stage_.whole(),
                          saved,
                          std::vector<at::Tensor>(stage_.program->outputs.size()));
  }

 private:
  const Program program_;
  StageRuntime stage_;
  std::vector<at::Tensor> inputs_;
};

void run_module(const MeasuredModel& model) {
  model.loss().backward();
  for (const at::Tensor& parameter : model.parameters) {
    parameter.mutable_grad().reset();
  }
}

void compare(const MeasuredModel& model) {
  const Replay replay(model);
  std::vector<double> eager, replayed;
  for (int round = -kWarmUp; round < kRounds; ++round) {
    const double of_module = seconds_of([&] { run_module(model); });
    const double of_replay = seconds_of([&] { replay.run(); });
    if (round >= 0) {
      eager.push_back(of_module);
      replayed.push_back(of_replay);
    }
  }
  fmt::print("{}: eager {:.2f} ms; replayed {:.2f} ms, {:.3f} x\n",
             model.name,
             median(eager) * 1e3,
             median(replayed) * 1e3,
             median(replayed) / median(eager));
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  set_own_thread_count(1);
  fmt::print("{}, load {:.2f}\nforward and backward of a microbatch, medians of {} in turns\n",
             hardware(),
             load(),
             kRounds);
  compare(llama(256, /*stages=*/1));
  compare(llama(512, /*stages=*/1));
  compare(vit(/*stages=*/1));
  compare(unet(/*stages=*/1));
  return 0;
}

}  // namespace stagecraft::bench::replay
