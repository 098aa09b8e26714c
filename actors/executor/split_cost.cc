#include "stagecraft/actors/executor/split_cost.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include <ATen/core/grad_mode.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "stagecraft/actors/executor/stage_runtime.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/median.h"
#include "stagecraft/compiler/gradient_flow.h"
#include "stagecraft/compiler/memory_meter.h"
#include "stagecraft/compiler/memory_order.h"
#include "stagecraft/compiler/partition.h"
#include "stagecraft/compiler/probe.h"
#include "stagecraft/compiler/thread_count.h"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

constexpr int kWarmUp = 2;
/// Places of the cut to try, as shares of the operators. The stage after the cut is timed.
constexpr std::array kCuts{0.25, 0.125, 0.5, 0.75};

/// The last of two stages, and its inputs for a microbatch.
struct LastStage {
  Partition partition;
  Tensors inputs;
};

std::optional<LastStage> cut_at(const Graph& graph,
                                std::size_t place,
                                const Tensors& inputs,
                                const Tensors& labels) {
  std::vector<int> stage(graph.nodes.size(), 0);
  std::fill(stage.begin() + static_cast<std::ptrdiff_t>(place), stage.end(), 1);
  try {
    LastStage last{partition(graph, {stage, {"first", "last"}}), {}};
    std::vector<StageRun> runs = run_stages(graph, last.partition, inputs, labels);
    find_gradient_flow(last.partition, runs);
    const StageProgram& stage_behind = last.partition.stages[1];
    for (std::size_t i = 0; i < stage_behind.inputs.size(); ++i) {  // as they would arrive
      const at::Tensor& leaf = runs[1].leaves[i];
      const MemoryOrder& order = stage_behind.at(stage_behind.inputs[i].value).order;
      last.inputs.push_back(
          to_memory_order(leaf.detach(), order).requires_grad_(leaf.requires_grad()));
    }
    const bool has_halves =
        !stage_behind.parameters.empty() &&
        std::ranges::any_of(last.inputs, [](const at::Tensor& t) { return t.requires_grad(); });
    return has_halves ? std::optional(std::move(last)) : std::nullopt;
  } catch (const Error& error) {
    if (error.code() != Errc::CompilePartition) {
      throw;
    }
    return std::nullopt;  // an operator writes in place to a value that the other stage reads
  }
}

class SplitTiming {
 public:
  SplitTiming(const Graph& graph, LastStage stage, const Optimizer& optimizer)
      : stage_(std::move(stage)), runtime_(stage_.partition.stages[1], optimizer) {
    runtime_.load(initial_state(graph));
  }

  SplitCost run(int repeats) { return {.time = time(repeats), .bytes = bytes()}; }

 private:
  double time(int repeats) {
    std::vector<double> whole, halves;
    for (int i = 0; i < kWarmUp + repeats; ++i) {
      const double one = seconds_of({CellKind::Backward});
      const double two = seconds_of({CellKind::BackwardInput, CellKind::BackwardWeight});
      if (i >= kWarmUp) {
        whole.push_back(one);
        halves.push_back(two);
      }
    }
    const double all = median(std::move(whole));
    return all > 0 ? std::max(1.0, median(std::move(halves)) / all) : 1;
  }

  /// Returns the ratio of bytes held, from a run without timing: a meter takes time. Counts the
  /// received inputs too.
  double bytes() {
    const auto meter = std::make_shared<MemoryMeter>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    std::int64_t received = 0;
    for (const at::Tensor& input : stage_.inputs) {
      received += static_cast<std::int64_t>(input.nbytes());
    }
    SavedStage saved = forward();
    const auto before = static_cast<double>(meter->live() + received);
    StageGradients inputs = backward(CellKind::BackwardInput, saved);
    inputs = {};  // sent off at this point of a real step
    return static_cast<double>(meter->live() + received) / before;
  }

  double seconds_of(std::initializer_list<CellKind> kinds) {
    SavedStage saved = forward();
    const auto begun = Clock::now();
    for (const CellKind kind : kinds) {
      const StageGradients made = backward(kind, saved);
      if (kind != CellKind::BackwardInput) {
        runtime_.bucket.accumulate(made.parameters, 1.0);
      }
    }
    return std::chrono::duration<double>(Clock::now() - begun).count();
  }

  SavedStage forward() {
    return runtime_.forward(stage_.inputs, /*keeps_graphs=*/true, {.step = ++step_}).saved;
  }

  StageGradients backward(CellKind kind, SavedStage& saved) {
    const Tensors none(stage_.partition.stages[1].outputs.size());
    return runtime_.backward(kind, saved, none, /*accumulated=*/1.0);
  }

  const LastStage stage_;
  StageRuntime runtime_;
  std::int64_t step_ = 0;
};

}  // namespace

SplitCost measure_split(const Graph& graph,
                        const Tensors& inputs,
                        const Tensors& labels,
                        const ModelTiming& how) {
  return on_own_thread(how.threads, [&] {
    const at::AutoGradMode gradients(true);
    for (const double part : kCuts) {
      const auto place = static_cast<std::size_t>(part * static_cast<double>(graph.nodes.size()));
      if (place == 0) {
        continue;
      }
      if (auto stage = cut_at(graph, place, inputs, labels)) {
        return SplitTiming(graph, std::move(*stage), how.optimizer).run(how.repeats);
      }
    }
    return SplitCost();
  });
}

}  // namespace stagecraft
