#include "stagecraft/bench/step/thread_gain.h"

#include <array>
#include <functional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {
namespace {

constexpr int kGainRounds = 3, kGainSteps = 4;

/// Appends the seconds of each step except the first, which makes pools and optimizer state.
void time_steps(const std::function<void()>& step, std::vector<double>& seconds) {
  step();
  for (int i = 0; i < kGainSteps; ++i) {
    seconds.push_back(seconds_of(step));
  }
}

void time_trainer(const MeasuredModel& model,
                  const Program& program,
                  int threads,
                  std::vector<double>& seconds) {
  Trainer trainer(program, "1f1b", AdamW{}, {.threads_per_worker = threads});
  time_steps([&] { (void)trainer.step(model.inputs, model.labels).get(); }, seconds);
}

/// Runs the loop of a program without Stagecraft, on a thread of its own so that its pool ends with
/// it.
void time_plain_loop(const MeasuredModel& model, int threads, std::vector<double>& seconds) {
  std::thread([&] {
    set_own_thread_count(threads);
    torch::optim::AdamW optimizer(model.parameters);
    time_steps(
        [&] {
          optimizer.zero_grad();
          for (int m = 0; m < model.microbatches; ++m) {
            (model.loss() / model.microbatches).backward();
          }
          optimizer.step();
        },
        seconds);
  }).join();
}

std::string line_of(const char* what, const ThreadGain::Steps& steps) {
  return fmt::format("  {}: step {:.0f} ms with 1 thread, {:.0f} ms with 2; {:.2f} x\n",
                     what,
                     steps.one_thread * 1e3,
                     steps.two_threads * 1e3,
                     steps.one_thread / steps.two_threads);
}

nlohmann::json json_of(const ThreadGain::Steps& steps) {
  return {{"one_thread", steps.one_thread}, {"two_threads", steps.two_threads}};
}

}  // namespace

ThreadGain thread_gain(const MeasuredModel& model) {
  const Program program = model.compile();
  std::array<std::vector<double>, 2> trainer, plain;  // index: threads - 1
  for (int round = 0; round < kGainRounds; ++round) {
    for (const std::size_t i : {0, 1}) {
      const int threads = static_cast<int>(i) + 1;
      time_trainer(model, program, threads, trainer[i]);
      time_plain_loop(model, threads, plain[i]);
    }
  }
  return {.trainer = {median(trainer[0]), median(trainer[1])},
          .plain_loop = {median(plain[0]), median(plain[1])}};
}

std::string text_of(const ThreadGain& gain) {
  return line_of("trainer, --threads-per-worker", gain.trainer) +
         line_of("plain loop", gain.plain_loop);
}

nlohmann::json json_of(const ThreadGain& gain) {
  return {{"trainer", json_of(gain.trainer)}, {"plain_loop", json_of(gain.plain_loop)}};
}

}  // namespace stagecraft::bench
