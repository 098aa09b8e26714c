/// Tests the memory that a rank really has allocated between its tasks, counted by LibTorch's
/// allocator.
#include <algorithm>
#include <map>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/planned_bytes.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

constexpr std::int64_t kMemoryRows = 64;
constexpr std::int64_t kMemoryWidth = 256;
constexpr std::int64_t kActivation = kMemoryRows * kMemoryWidth * 4;  // bytes of one activation
constexpr int kGelus = 10;

/// Counts the bytes that its thread allocates and frees.
struct Meter : c10::MemoryReportingInfoBase {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    live += size;
    peak = std::max(peak, live);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
};

/// Has a second stage that keeps the input of every gelu, which only the gradient of its own input
/// needs.
struct Gelus : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(kMemoryWidth, kMemoryWidth))};
  torch::nn::Linear second{
      register_module("second", torch::nn::Linear(kMemoryWidth, kMemoryWidth))};
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
  const Batch inputs{torch::randn({kMemoryRows, kMemoryWidth})},
      labels{torch::randn({kMemoryRows, kMemoryWidth})};
  const Program program = compile(
      module,
      {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = 1});

  std::map<CellKind, std::int64_t> live_before;
  std::shared_ptr<Meter> meter;
  testing::PipelineOptions options;
  options.faults[Rank(1)] = [&](const Instruction& i) {
    if (!meter) {  // on the rank's own thread, at its first instruction
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
  // The rest is the gradient at the linear layer's output, and the one sent on, which the other
  // rank may still hold.
  CHECK(kept_for_weights <= 3 * kActivation);
}

/// Holds what the second stage of Gelus takes, in activations.
struct Taken {
  double kept = 0;     ///< by the forwards of all microbatches
  double between = 0;  ///< by the first, from its input half to its weight half
  double peak = 0;     ///< above the use before
  double counted = 0;  ///< the peak counted by the rank's slots
  double planned = 0;  ///< the peak in the plan
};

Taken taken_by(const Recompute& recompute, const std::string& list) {
  constexpr int kParts = 4;
  torch::manual_seed(31);
  Gelus module;
  const Batch inputs{torch::randn({kParts * kMemoryRows, kMemoryWidth})};
  const Batch labels{torch::randn({kParts * kMemoryRows, kMemoryWidth})};
  const Program program = compile(module,
                                  {.inputs = inputs,
                                   .labels = labels,
                                   .loss = testing::mean_square,
                                   .microbatches = kParts,
                                   .recompute = recompute});
  const Schedule schedule = Schedule::parse("@form list\n" + list);
  std::map<Task, std::int64_t> before;
  std::shared_ptr<Meter> meter;
  testing::PipelineOptions options;
  options.faults[Rank(1)] = [&](const Instruction& i) {
    if (!meter) {
      meter = std::make_shared<Meter>();
      c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, meter);
    }
    if (i.op == Op::Run) {
      before[i.task] = meter->live;
    }
  };
  testing::Pipeline pipeline(program, schedule, options);
  const auto outcome = pipeline.step(inputs, labels);
  REQUIRE_FALSE(outcome.errors[1].has_value());
  const Plan plan = lower_schedule(program, schedule, Layout::of(schedule), true);
  const auto activations = [](std::int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(kActivation);
  };
  const StageId second(1);
  const std::int64_t start = before.at({CellKind::Forward, second, Microbatch(0)});
  const auto since_start = [&](CellKind kind) {
    const auto found = before.find({kind, second, Microbatch(0)});
    return found == before.end() ? 0 : activations(found->second - start);
  };
  return {.kept = since_start(CellKind::Backward) + since_start(CellKind::BackwardInput),
          .between = since_start(CellKind::BackwardWeight),
          .peak = activations(meter->peak - start),
          .counted = activations(outcome.reports[1].times.peak_bytes),
          .planned = activations(
              peak_activation_bytes(program.compiled(), plan.tables, plan.list_of(Rank(1))))};
}

TEST_CASE("a stage that is recomputed keeps its inputs, and one replay at a time",
          "[executor][memory][recompute]") {
  const std::string whole = "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3\n";
  const Taken plain = taken_by(Recompute::nothing(), whole);
  const Taken recomputed = taken_by(Recompute::stages(), whole);
  CHECK(plain.kept >= 4 * kGelus);
  CHECK(recomputed.kept < 1);  // the other rank holds the inputs
  CHECK(plain.peak >= 4 * kGelus);
  CHECK(recomputed.peak >= kGelus);
  CHECK(recomputed.peak <= 2 * kGelus);  // gradients too
  // Both counts include inputs, and the plan adds the other needs of a forward.
  CHECK(plain.counted >= 4 * kGelus);
  CHECK(recomputed.counted <= 2.5 * kGelus);
  CHECK(plain.planned >= plain.counted);
  CHECK(recomputed.planned >= recomputed.counted);
  CHECK(recomputed.planned <= 3 * kGelus);

  const std::string split =
      "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n1F0 1F1 1F2 1F3 1I0 1I1 1I2 1I3 1W0 1W1 1W2 1W3\n";
  const Taken halves = taken_by(Recompute::stages(), split);
  CHECK(halves.kept < 1);
  CHECK(halves.between <= 4 * 3);  // replays, minus what only their input halves needed
  CHECK(halves.peak <= 4 * 3 + 1.5 * kGelus);
  CHECK(halves.counted >= 4 * kGelus);  // the count does not see what an input half frees
  CHECK(halves.planned >= halves.counted);
}

}  // namespace
}  // namespace stagecraft
