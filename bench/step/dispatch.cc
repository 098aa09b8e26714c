/// What does it cost to dispatch task by task? This program trains a chain of small stages in two
/// ways: the ranks follow their lists, or the driver releases each task. Both have the same bits.
///
/// Both ways are measured in turns. The cost of a task is the difference of their steps, divided by
/// the tasks; that of a column likewise.
///
///   dispatch
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::dispatch {
namespace {

constexpr int kStages = 4;
constexpr int kMicrobatches = 16;
constexpr int kSteps = 20;
constexpr int kRounds = 5;
constexpr std::int64_t kWidth = 32;

struct Chain : torch::nn::Module {
  torch::nn::ModuleList layers{register_module("layers", torch::nn::ModuleList())};
  Chain() {
    for (int s = 0; s < kStages; ++s) {
      layers->push_back(torch::nn::Linear(kWidth, kWidth));
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (int s = 0; s < kStages; ++s) {
      x = stage(fmt::format("{}", s),
                [&] { return layers->ptr<torch::nn::LinearImpl>(s)->forward(x); });
    }
    return x;
  }
};

struct Way {
  Trainer trainer;
  std::vector<double> rounds;  ///< microseconds of a step
};

void measure(std::string_view ranks, const Cluster& cluster, std::string_view name) {
  torch::manual_seed(0);
  const at::Tensor batch = torch::randn({4 * kMicrobatches, kWidth});
  const Program program = compile(std::make_shared<Chain>(),
                                  {.inputs = {batch},
                                   .labels = {},
                                   .loss = [](const at::Tensor& y) { return y.square().mean(); },
                                   .microbatches = kMicrobatches});
  const Schedule schedule = schedule_for(name, program.stage_graph(), kMicrobatches);
  const Schedule list = schedule.to_list();
  const auto columns = to_array(list, program.stage_graph()).columns();
  std::size_t tasks = 0;
  for (const Schedule::Row& row : list.rows()) {
    tasks += row.size();
  }
  std::vector<Way> ways;
  for (const Dispatch dispatch : {Dispatch::Plan, Dispatch::PerTask}) {
    ways.push_back(
        {Trainer(cluster, program, schedule, Sgd{.lr = 0.0}, {.dispatch = dispatch}), {}});
  }
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    for (Way& way : ways) {
      const double seconds = seconds_of([&] {
        for (int i = 0; i < kSteps; ++i) {
          (void)way.trainer.step({batch}, {}).get();
        }
      });
      if (round >= 0) {
        way.rounds.push_back(seconds * 1e6 / kSteps);
      }
    }
  }
  const double plan = median(ways[0].rounds), by_task = median(ways[1].rounds);
  fmt::print(
      "| {:<9} | {:<6} | {:>5} | {:>7} | {:>7.0f} us | {:>7.0f} us | {:>6.1f} us | {:>6.1f} us |\n",
      ranks,
      name,
      tasks,
      columns,
      plan,
      by_task,
      (by_task - plan) / static_cast<double>(tasks),
      (by_task - plan) / static_cast<double>(columns));
}

}  // namespace

int run(int argc, char** /*argv*/) {
  if (argc > 1) {
    fmt::print(stderr, "usage: dispatch\n");
    return 2;
  }
  fmt::print(
      "{}\n{} stages, {} microbatches; medians of {} rounds\n\n"
      "| ranks are | schedule | tasks | columns | plan | by task | more per task | more per column "
      "|\n"
      "|---|---|---|---|---|---|---|---|\n",
      hardware(),
      kStages,
      kMicrobatches,
      kRounds);
  const Cluster processes = Cluster::spawn(kStages);
  for (const std::string_view name : {"gpipe", "1f1b", "zb-h1"}) {
    measure("threads", Cluster::local(kStages), name);
    measure("processes", processes, name);
  }
  return 0;
}

}  // namespace stagecraft::bench::dispatch
