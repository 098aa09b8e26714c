#include "stagecraft/actors/profile/split_cost.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/profile/block_makers.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/median.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/gradient_flow.h"
#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

constexpr int kSplitWarmUp = 2;
/// The other places at which the cut is tried, as parts of the operators.
constexpr std::array kCuts{0.125, 0.25, 0.5, 0.75};

/// Returns the stage of each operator, 0 or 1. Stage 0 has the operators with which the gradient's
/// way ends, because they read nothing that owes one, and the operators that these need. So I
/// passes all others.
std::vector<int> without_sources(const Graph& graph) {
  std::vector<int> stage_of(graph.nodes.size(), 1);
  std::set<ValueId> of_batch(graph.inputs.begin(), graph.inputs.end());
  of_batch.insert(graph.labels.begin(), graph.labels.end());
  std::set<ValueId> passed;  // of the batch: owes a gradient, or is the last stage's
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<ValueId> reads = reads_of(graph.nodes[n]);
    const auto is_in = [](const std::set<ValueId>& values) {
      return [&](ValueId id) { return values.contains(id); };
    };
    if (std::ranges::none_of(reads, is_in(of_batch))) {
      continue;  // of parameters alone: it stays with its readers
    }
    stage_of[n] = std::ranges::any_of(reads, is_in(passed)) ? 1 : 0;
    for (const ValueId result : graph.nodes[n].results) {
      if (result != kNoValue) {
        of_batch.insert(result);
        if (stage_of[n] == 1 || graph.at(result).requires_grad) {
          passed.insert(result);
        }
      }
    }
  }
  std::set<ValueId> needed;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    if (std::ranges::any_of(graph.nodes[n].results,
                            [&](ValueId id) { return needed.contains(id); })) {
      stage_of[n] = 0;
    }
    if (stage_of[n] == 0) {
      const std::vector<ValueId> reads = reads_of(graph.nodes[n]);
      needed.insert(reads.begin(), reads.end());
    }
  }
  return stage_of;
}

std::vector<int> cut_at(std::size_t place, std::size_t count) {
  std::vector<int> stage_of(count, 0);
  std::fill(stage_of.begin() + static_cast<std::ptrdiff_t>(place), stage_of.end(), 1);
  return stage_of;
}

/// The last of two stages, and its inputs for a microbatch.
struct LastStage {
  std::vector<int> stage_of;
  Partition partition;
  Tensors inputs;
};

std::optional<LastStage> cut(const Graph& graph,
                             const std::vector<int>& stage_of,
                             const Tensors& inputs,
                             const Tensors& labels) {
  if (std::ranges::adjacent_find(stage_of, std::not_equal_to()) == stage_of.end()) {
    return std::nullopt;  // a stage would have no operator
  }
  try {
    LastStage last{stage_of, partition(graph, {stage_of, {"first", "last"}}), {}};
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

/// Tells the makers of a forward which operator runs, and knows which made a node of autograd.
class MakerWatch : public ChunkWatch {
 public:
  /// `nodes`: those of the stage, as places in the graph.
  MakerWatch(BlockMakers& makers, std::vector<std::size_t> nodes)
      : makers_(makers), nodes_(std::move(nodes)) {}

  void before(std::size_t node) override {
    makers_.set_maker(nodes_[node]);
    first_.push_back(at::sequence_number::peek());
  }
  [[nodiscard]] std::size_t maker_of(std::uint64_t sequence) const {
    const auto behind = std::ranges::upper_bound(first_, sequence) - first_.begin();
    return nodes_[static_cast<std::size_t>(std::max<std::ptrdiff_t>(behind, 1)) - 1];
  }

 private:
  BlockMakers& makers_;
  const std::vector<std::size_t> nodes_;
  std::vector<std::uint64_t> first_;  // sequence number, by operator
};

class SplitTiming {
 public:
  SplitTiming(const Graph& graph, LastStage stage, const Optimizer& optimizer)
      : stage_(std::move(stage)), runtime_(stage_.partition.stages[1], optimizer) {
    runtime_.load(initial_state(graph));
  }

  SplitCost run(int repeats) { return {.time = time(repeats), .waiting = waiting()}; }

 private:
  double time(int repeats) {
    std::vector<double> whole, halves;
    for (int i = 0; i < kSplitWarmUp + repeats; ++i) {
      const double one = seconds_of({CellKind::Backward});
      const double two = seconds_of({CellKind::BackwardInput, CellKind::BackwardWeight});
      if (i >= kSplitWarmUp) {
        whole.push_back(one);
        halves.push_back(two);
      }
    }
    const double all = median(std::move(whole));
    return all > 0 ? std::max(1.0, median(std::move(halves)) / all) : 1;
  }

  /// Measures in a run that nobody times, because a meter takes time.
  std::vector<std::optional<WaitingBytes>> waiting() {
    std::vector<std::optional<WaitingBytes>> found(stage_.stage_of.size());
    std::vector<std::size_t> nodes;
    for (std::size_t n = 0; n < found.size(); ++n) {
      if (stage_.stage_of[n] == 1) {
        found[n].emplace();
        nodes.push_back(n);
      }
    }
    const auto makers = std::make_shared<BlockMakers>();
    MakerWatch watch(*makers, std::move(nodes));
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, makers);
    SavedStage saved = forward(&watch);
    makers->set_maker(std::nullopt);
    (void)backward(CellKind::BackwardInput, saved);
    for (const auto& [block, made] : makers->alive()) {
      if (made.maker) {
        found[*made.maker]->values += made.bytes;
      }
    }
    std::set<const void*> counted;
    for (const Saved& chunk : saved.chunks) {
      for (std::size_t i = 0; i < chunk.frontier.size(); ++i) {
        const c10::Storage& storage = chunk.frontier_gradients[i].storage();
        if (counted.insert(storage.data()).second) {
          found[watch.maker_of(chunk.frontier[i].function->sequence_nr())]->gradients +=
              static_cast<double>(storage.nbytes());
        }
      }
    }
    return found;
  }

  double seconds_of(std::initializer_list<CellKind> kinds) {
    SavedStage saved = forward();
    const auto begun = SteadyClock::now();
    for (const CellKind kind : kinds) {
      const StageGradients made = backward(kind, saved);
      if (kind != CellKind::BackwardInput) {
        runtime_.buckets.accumulate(made.parameters, 1.0);
      }
    }
    return std::chrono::duration<double>(SteadyClock::now() - begun).count();
  }

  SavedStage forward(ChunkWatch* watch = nullptr) {
    SavedStage saved;
    (void)runtime_.forward(runtime_.whole(),
                           stage_.inputs,
                           /*keeps_graphs=*/true,
                           {.step = ++step_},
                           saved,
                           watch);
    return saved;
  }

  StageGradients backward(CellKind kind, SavedStage& saved) {
    const Tensors none(stage_.partition.stages[1].outputs.size());
    return runtime_.backward(kind, runtime_.whole(), saved, none, /*accumulated=*/1.0);
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
    const std::size_t count = graph.nodes.size();
    std::vector<std::vector<int>> cuts{without_sources(graph)};
    for (const double part : kCuts) {
      cuts.push_back(cut_at(static_cast<std::size_t>(part * static_cast<double>(count)), count));
    }
    for (const std::vector<int>& stage_of : cuts) {
      if (auto stage = cut(graph, stage_of, inputs, labels)) {
        return SplitTiming(graph, std::move(*stage), how.optimizer).run(how.repeats);
      }
    }
    return SplitCost();
  });
}

}  // namespace stagecraft
