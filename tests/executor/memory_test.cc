/// What a rank really has allocated between its tasks, counted by LibTorch's allocator.
#include <map>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/tests/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

constexpr std::int64_t kRows = 64;
constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kActivation = kRows * kWidth * 4;  // bytes of one
constexpr int kGelus = 10;

/// Counts what its thread allocates and frees.
struct Meter : c10::MemoryReportingInfoBase {
  std::int64_t live = 0;
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    live += size;
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
};

/// The second stage keeps the input of every gelu, which only the gradient of its own input needs.
struct Gelus : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(kWidth, kWidth))};
  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] { return first(x); });
    return stage("second", [&] {
      torch::Tensor y = second(h);
      for (int i = 0; i < kGelus; ++i) {
        y = torch::gelu(y);
      }
      return y;
    });
  }
};

TEST_CASE("what only the input half of a backward needed is freed before the weight half",
          "[executor][memory]") {
  torch::manual_seed(31);
  Gelus module;
  const Batch inputs{torch::randn({kRows, kWidth})}, labels{torch::randn({kRows, kWidth})};
  const Program program = compile(
      module,
      {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = 1});

  std::map<CellKind, std::int64_t> live_before;
  std::shared_ptr<Meter> meter;
  testing::PipelineOptions options;
  options.faults[Rank(1)] = [&](const Instruction& i) {
    if (!meter) {  // the rank's own thread, at its first instruction
      meter = std::make_shared<Meter>();
      c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, meter);
    }
    if (i.op == Op::Run) {
      live_before[i.task.kind] = meter->live;
    }
  };
  testing::Pipeline pipeline(
      program, Schedule::parse("@form list\n0F0 0I0 0W0\n1F0 1I0 1W0\n"), options);
  const auto outcome = pipeline.step(inputs, labels);
  REQUIRE_FALSE(outcome.errors[1].has_value());

  const std::int64_t kept_by_forward =
      live_before[CellKind::BackwardInput] - live_before[CellKind::Forward];
  const std::int64_t kept_for_weights =
      live_before[CellKind::BackwardWeight] - live_before[CellKind::Forward];
  CHECK(kept_by_forward >= kGelus * kActivation);
  // The gradient at the linear layer's output, and the one sent on, which the other rank may still
  // hold.
  CHECK(kept_for_weights <= 3 * kActivation);
}

}  // namespace
}  // namespace stagecraft
