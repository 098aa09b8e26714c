/// What does code on the driver cost? This program trains two stages of one layer each. Between
/// them is no code, or code of the driver that hands its tensor on, prints its size, reads a value
/// of it, or reads all values.
///
/// Each way is measured in turns with all others, by the bytes of the tensor, with ranks that are
/// threads and worker processes. The figures are microseconds of a microbatch's share of a step.
///
///   driver_code
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::driver_code {
namespace {

constexpr int kMicrobatches = 8;
constexpr int kSteps = 30;
constexpr int kRounds = 5;
constexpr std::int64_t kWidth = 64;

using Code = at::Tensor (*)(const at::Tensor&);

struct Way {
  std::string_view name;
  Code code = nullptr;  ///< null: none
};

std::FILE* nowhere() {
  static std::FILE* const file = std::fopen("/dev/null", "w");
  return file;
}

constexpr Way kWays[] = {
    {"nothing", nullptr},
    {"hands on", [](const at::Tensor& t) { return t; }},
    {"prints",
     [](const at::Tensor& t) {
       fmt::print(nowhere(), "a tensor of {} rows\n", t.size(0));
       return t;
     }},
    {"reads a value",
     [](const at::Tensor& t) {
       fmt::print(nowhere(), "{}\n", t[0][0].item<float>());
       return t;
     }},
    {"reads all",
     [](const at::Tensor& t) {
       fmt::print(nowhere(), "{}\n", t.sum().item<float>());
       return t;
     }},
};

struct Chain : torch::nn::Module {
  explicit Chain(Code c) : code(c) {}
  Code code;
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kWidth, kWidth))};
  at::Tensor forward(at::Tensor x) {
    const at::Tensor h = stage("in", in, x);
    return stage("out", [&] { return out(code == nullptr ? h : on_driver("code", code, h)); });
  }
};

struct Measured {
  Trainer trainer;
  at::Tensor batch;
  std::vector<double> rounds;  ///< microseconds of a microbatch
};

Measured measured(const Cluster& cluster, const Way& way, std::int64_t rows) {
  torch::manual_seed(0);
  const at::Tensor batch = torch::randn({rows * kMicrobatches, kWidth});
  const Program program = compile(std::make_shared<Chain>(way.code),
                                  {.inputs = {batch},
                                   .labels = {},
                                   .loss = [](const at::Tensor& y) { return y.square().mean(); },
                                   .microbatches = kMicrobatches});
  return {Trainer(cluster, program, "1f1b", Sgd{.lr = 0.0}), batch, {}};
}

void measure(std::string_view ranks, const Cluster& cluster, std::int64_t rows) {
  std::vector<Measured> all;
  for (const Way& way : kWays) {
    all.push_back(measured(cluster, way, rows));
  }
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    for (Measured& one : all) {
      const double seconds = seconds_of([&] {
        for (int i = 0; i < kSteps; ++i) {
          (void)one.trainer.step({one.batch}, {}).get();
        }
      });
      if (round >= 0) {
        one.rounds.push_back(seconds * 1e6 / (kSteps * kMicrobatches));
      }
    }
  }
  const auto bytes = rows * kWidth * static_cast<std::int64_t>(sizeof(float));
  fmt::print("| {:<9} | {:>8} |", ranks, fmt::format("{} KiB", bytes / 1024));
  for (const Measured& one : all) {
    fmt::print(" {:>10.0f} us |", median(one.rounds));
  }
  fmt::print("\n");
}

}  // namespace

int run(int argc, char** /*argv*/) {
  if (argc > 1) {
    fmt::print(stderr, "usage: driver_code\n");
    return 2;
  }
  fmt::print(
      "{}\n1f1b, two stages, {} microbatches; medians of {} rounds\n\n| ranks are | tensor |",
      hardware(),
      kMicrobatches,
      kRounds);
  for (const Way& way : kWays) {
    fmt::print(" {} |", way.name);
  }
  fmt::print("\n|---|---|---|---|---|---|---|\n");
  const Cluster processes = Cluster::spawn(2);
  for (const std::int64_t rows : {4, 256, 4096}) {
    measure("threads", Cluster::local(2), rows);
    measure("processes", processes, rows);
  }
  return 0;
}

}  // namespace stagecraft::bench::driver_code
