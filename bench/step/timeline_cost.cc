/// What does it cost to record when every instruction began and ended? This program measures with
/// recording on and off, in turns, in one run.
///
/// First it measures the recorder alone, around nothing: that is the cost of its clock reads and
/// stores. Then it measures a whole step of one rank whose stages do nothing, on this thread,
/// without actors or peers, so that no other thread's scheduling counts.
#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/device/timeline.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::timeline_cost {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kInstructions = 1000;
constexpr int kRounds = 1000;
constexpr int kStages = 4, kMicrobatches = 16;

double nanoseconds_of(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// Runs off and on in turns, in many short rounds. The best of each counts, because other load of
/// the machine only adds time.
void compare(const char* what,
             double instructions,
             const std::function<void()>& off,
             const std::function<void()>& on) {
  double best_off = std::numeric_limits<double>::infinity(), best_on = best_off;
  for (int round = 0; round < kRounds; ++round) {
    best_off = std::min(best_off, nanoseconds_of(off));
    best_on = std::min(best_on, nanoseconds_of(on));
  }
  fmt::print("{:<52} off {:>7.1f} ns, on {:>7.1f} ns, recording {:>6.1f} ns\n",
             what,
             best_off / instructions,
             best_on / instructions,
             (best_on - best_off) / instructions);
}

/// Does the executor's work around an instruction: it stores when the instruction began, recording
/// or not.
void around_nothing() {
  const std::unique_ptr<Device> device = cpu_device();
  TimelineRecorder recorder(kInstructions, *device);
  Progress progress;
  const auto off = [&] {
    for (std::size_t i = 0; i < kInstructions; ++i) {
      progress.begin(i);
    }
  };
  const auto on = [&] {
    recorder.begin_step();
    for (std::size_t i = 0; i < kInstructions; ++i) {
      progress.begin(i);
      const Device::Event start = device->record(kCompute);
      recorder.record(i, start, device->record(kCompute), 0, 0, 0);
    }
    (void)recorder.take();
  };
  compare("an instruction that does nothing", kInstructions, off, on);
}

void around_receives() {
  const std::unique_ptr<Device> device = cpu_device();
  TimelineRecorder recorder(kInstructions, *device);
  const at::Tensor tensor = torch::ones({1});
  const auto receive = [&](bool recorded) {
    recorder.begin_step();
    for (std::size_t i = 0; i < kInstructions; ++i) {
      Promise<at::Tensor> promise;
      if (recorded) {
        recorder.expect(i, promise.future());
      }
      promise.set_value(tensor);
    }
    (void)recorder.take();
  };
  compare(
      "a receive, for its time of arrival",
      kInstructions,
      [&] { receive(false); },
      [&] { receive(true); });
}

/// Nothing is a model in which every stage passes its input on. The first stage owns one number, so
/// that gradients flow all the way back.
struct Nothing : torch::nn::Module {
  torch::Tensor one;
  Nothing() { one = register_parameter("one", torch::ones({1})); }
  torch::Tensor forward(torch::Tensor x) {
    for (int s = 0; s < kStages; ++s) {
      x = stage(fmt::format("s{}", s), [&] { return s == 0 ? x * one : x.view_as(x); });
    }
    return x;
  }
};

/// Returns a schedule with all stages on one rank, all forwards first.
Schedule one_rank() {
  Schedule::Row row;
  for (int m = 0; m < kMicrobatches; ++m) {
    for (int s = 0; s < kStages; ++s) {
      row.push_back(cells::F(s, m));
    }
  }
  for (int m = 0; m < kMicrobatches; ++m) {
    for (int s = kStages; s-- > 0;) {
      row.push_back(cells::B(s, m));
    }
  }
  return {Schedule::Form::List, {row}};
}

void around_a_step() {
  Nothing module;
  const auto x = torch::ones({kMicrobatches, 1});
  const auto loss = [](torch::Tensor output, torch::Tensor label) {
    return (output - label).sum();
  };
  const auto program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = kMicrobatches});
  const Schedule schedule = one_rank();
  const auto plan = std::make_shared<const Plan>(
      lower_schedule(program, schedule, Layout::of(schedule), /*training=*/true));
  const InprocNetwork network(1);
  std::int64_t step = 0;
  const auto make = [&](bool record) {
    const Job job{.program = program.shared(),
                  .train = plan,
                  .optimizer = Sgd{.lr = 0.0},
                  .options = {.record_timeline = record}};
    return std::make_unique<StageExecutor>(rank_setup(job, Rank(0)), network.endpoint(Rank(0)));
  };
  const auto run = [&](StageExecutor& executor) {
    for (const Feed& feed : plan->feeds) {
      network.endpoint(kDriver)->send(
          Rank(0),
          {.submission = Submission(step), .edge = feed.edge, .microbatch = feed.microbatch},
          torch::ones({1, 1}));
    }
    (void)executor.run({.submission = Submission(step)});
    ++step;
  };
  const auto off = make(false), on = make(true);
  run(*off);
  run(*on);
  const auto instructions = static_cast<double>(plan->instruction_count());
  compare(
      fmt::format("a step of one rank, by each of its {:.0f} instructions", instructions).c_str(),
      instructions,
      [&] { run(*off); },
      [&] { run(*on); });
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  at::set_num_threads(1);
  fmt::print("{}\nbest of {} rounds each, on and off in turns\n", hardware(), kRounds);
  around_nothing();
  around_receives();
  around_a_step();
  return 0;
}

}  // namespace stagecraft::bench::timeline_cost
