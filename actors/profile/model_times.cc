#include "stagecraft/actors/profile/model_times.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/profile/block_makers.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/median.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/gradient_flow.h"
#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

// The first runs meet cold caches and untouched pages.
constexpr int kWarmUp = 2;

double seconds_between(SteadyClock::time_point begin, SteadyClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Returns the most bytes held since the last call; 0 without a meter. Until the next call, counts
/// all but the blocks of operators before `first`.
double peak_since(BlockMakers* meter, std::size_t first = 0) {
  if (meter == nullptr) {
    return 0;
  }
  const double peak = meter->peak();
  meter->count_from(first);
  return peak;
}

/// Records when each operator of a forward began, and the first sequence number of its autograd
/// nodes.
class ForwardLog : public ChunkWatch {
 public:
  void before(std::size_t /*node*/) override {
    peaks_.push_back(peak_since(meter_));
    if (meter_ != nullptr) {
      meter_->set_maker(begun_.size());
    }
    begun_.push_back(SteadyClock::now());
    first_.push_back(at::sequence_number::peek());
  }
  void clear(BlockMakers* meter) {
    begun_.clear();
    first_.clear();
    peaks_.clear();
    meter_ = meter;
  }

  [[nodiscard]] const std::vector<SteadyClock::time_point>& begun() const { return begun_; }
  /// Returns the most bytes at once before each operator, since the operator before it.
  [[nodiscard]] const std::vector<double>& peaks() const { return peaks_; }
  [[nodiscard]] std::size_t operator_of(std::uint64_t sequence) const {
    const auto behind = std::ranges::upper_bound(first_, sequence);
    return behind == first_.begin() ? 0 : static_cast<std::size_t>(behind - first_.begin()) - 1;
  }

 private:
  std::vector<SteadyClock::time_point> begun_;
  std::vector<std::uint64_t> first_;
  std::vector<double> peaks_;
  BlockMakers* meter_ = nullptr;
};

/// Records a backward on this thread: its nodes and, if asked for, the operators outside nodes.
struct BackwardLog {
  explicit BackwardLog(const ForwardLog& of) : forward(of) {}

  struct Event {
    std::uint64_t sequence = 0;
    SteadyClock::time_point begun;
    double sums = 0;  // in operators after it, until the next event
    double peak = 0;  // most bytes at once until the next event, as OperatorTimes::backward_peak
  };
  const ForwardLog& forward;
  std::vector<Event> events;
  BlockMakers* meter = nullptr;
  int nodes_open = 0;
  int operators_open = 0;  // outside nodes
  SteadyClock::time_point sum_begun;
};

thread_local BackwardLog* log_of_thread = nullptr;

bool is_engine(const at::RecordFunction& function) {
  return std::string_view(function.name()).starts_with("autograd::engine");
}

std::unique_ptr<at::ObserverContext> begin_function(const at::RecordFunction& function) {
  BackwardLog& log = *log_of_thread;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    if (log.nodes_open++ == 0) {
      const auto sequence = static_cast<std::uint64_t>(function.seqNr());
      const double peak = peak_since(log.meter, log.forward.operator_of(sequence));
      if (!log.events.empty()) {
        log.events.back().peak = peak;
      }
      log.events.push_back({sequence, SteadyClock::now()});
    }
  } else if (log.nodes_open == 0 && !is_engine(function) && log.operators_open++ == 0) {
    log.sum_begun = SteadyClock::now();
  }
  return nullptr;
}

void end_function(const at::RecordFunction& function, at::ObserverContext*) {
  BackwardLog& log = *log_of_thread;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    --log.nodes_open;
  } else if (log.nodes_open == 0 && !is_engine(function) && --log.operators_open == 0 &&
             !log.events.empty()) {
    log.events.back().sums += seconds_between(log.sum_begun, SteadyClock::now());
  }
}

/// While it lives, logs autograd's nodes on this thread. Logging operators outside nodes costs
/// time, so separate runs do that.
class Listening {
 public:
  Listening(BackwardLog& log, bool operators) {
    log_of_thread = &log;
    at::RecordFunctionCallback callback(&begin_function, &end_function);
    std::unordered_set<at::RecordScope, std::hash<at::RecordScope>> scopes{
        at::RecordScope::BACKWARD_FUNCTION};
    if (operators) {
      scopes.insert(at::RecordScope::FUNCTION);
    }
    handle_ = at::addThreadLocalCallback(std::move(callback.scopes(scopes)));
  }
  ~Listening() {
    at::removeCallback(handle_);
    log_of_thread = nullptr;
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  at::CallbackHandle handle_ = 0;
};

/// Returns the whole model as one stage.
Partition one_stage(const Graph& graph, const Tensors& inputs, const Tensors& labels) {
  Partition made = partition(graph, {std::vector<int>(graph.nodes.size(), 0), {"model"}});
  find_gradient_flow(made, run_stages(graph, made, inputs, labels));
  return made;
}

/// Trains a copy of the model on one microbatch, repeatedly.
class Timing {
 public:
  Timing(const Graph& graph, const Tensors& inputs, const Tensors& labels, const ModelTiming& how)
      : how_(how),
        partition_(one_stage(graph, inputs, labels)),
        runtime_(partition_.stages.front(),
                 how.optimizer,
                 {.groups = {}, .master_weights = how.master_weights, .lent_memory = {}}) {
    runtime_.load(initial_state(graph));
    for (const StageInput& input : partition_.stages.front().inputs) {
      const auto position = static_cast<std::size_t>(input.position);
      inputs_.push_back(input.source == StageInput::Source::Label ? labels[position]
                                                                  : inputs[position]);
    }
  }

  ModelTimes run() {
    for (int i = 0; i < kWarmUp; ++i) {
      run_once(/*operators=*/false);
    }
    ModelTimes times;
    const std::size_t count = forward_.begun().size();
    std::vector<std::vector<double>> forward(count), backward(count), sums(count);
    std::vector<double> update;
    for (int i = 0; i < how_.repeats; ++i) {
      const Run one = run_once(/*operators=*/false);
      times.microbatches.push_back(one.seconds);
      update.push_back(one.update);
      for (std::size_t n = 0; n < count; ++n) {
        forward[n].push_back(one.forward[n]);
        backward[n].push_back(one.backward[n]);
      }
    }
    for (int i = 0; i < how_.repeats; ++i) {
      const Run one = run_once(/*operators=*/true);
      for (std::size_t n = 0; n < count; ++n) {
        sums[n].push_back(one.sums[n]);
      }
    }
    const Run counted = count_bytes();
    for (std::size_t n = 0; n < count; ++n) {
      const double all = median(std::move(backward[n]));
      times.operators.push_back({.forward = median(std::move(forward[n])),
                                 .backward = all,
                                 .sums = std::min(all, median(std::move(sums[n]))),
                                 .forward_peak = counted.forward_peaks[n],
                                 .backward_peak = counted.backward_peaks[n]});
    }
    times.update = median(std::move(update));
    times.saved_bytes = static_cast<double>(partition_.stages.front().saved_bytes);
    return times;
  }

 private:
  struct Run {
    std::vector<double> forward, backward, sums;        // by operator
    std::vector<double> forward_peaks, backward_peaks;  // likewise
    double seconds = 0;
    double update = 0;
  };

  /// Returns a run with peaks, whose times do not count: a meter takes time.
  [[nodiscard]] Run count_bytes() {
    const auto meter = std::make_shared<BlockMakers>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    return run_once(/*operators=*/false, meter.get());
  }

  Run run_once(bool operators, BlockMakers* meter = nullptr) {
    forward_.clear(meter);
    BackwardLog backward(forward_);
    backward.meter = meter;
    const auto begun = SteadyClock::now();
    SavedStage saved;
    (void)runtime_.forward(runtime_.whole(),
                           inputs_,
                           /*keeps_graphs=*/true,
                           {.step = ++step_},
                           saved,
                           &forward_);
    const double behind_forward = peak_since(meter);
    if (meter != nullptr) {
      meter->set_maker(std::nullopt);
    }
    const auto half = SteadyClock::now();
    {
      const Listening listening(backward, operators);
      runtime_.buckets.accumulate(
          runtime_.backward(CellKind::Backward, runtime_.whole(), saved, {}, /*accumulated=*/1.0)
              .parameters,
          1.0);
    }
    if (!backward.events.empty()) {
      backward.events.back().peak = peak_since(meter);
    }
    const auto end = SteadyClock::now();
    (void)runtime_.buckets.squared_norms(1.0);
    runtime_.buckets.update(/*learning_rate=*/0.0, {}, {step_});
    Run run = parted(begun, half, backward, end);
    run.forward_peaks = peaks_in_forward(behind_forward);
    run.backward_peaks = peaks_in(backward);
    run.update = seconds_between(end, SteadyClock::now());
    return run;
  }

  /// Divides the run's time over the operators. Keeps MDT-1: every moment belongs to one operator.
  [[nodiscard]] Run parted(SteadyClock::time_point begun,
                           SteadyClock::time_point half,
                           const BackwardLog& backward,
                           SteadyClock::time_point end) const {
    const std::vector<SteadyClock::time_point>& begins = forward_.begun();
    const std::size_t count = begins.size();
    Run run{.forward = std::vector<double>(count),
            .backward = std::vector<double>(count),
            .sums = std::vector<double>(count),
            .seconds = seconds_between(begun, end)};
    for (std::size_t n = 0; n < count; ++n) {
      run.forward[n] =
          seconds_between(n == 0 ? begun : begins[n], n + 1 < count ? begins[n + 1] : half);
    }
    const std::vector<BackwardLog::Event>& events = backward.events;
    for (std::size_t e = 0; e < events.size(); ++e) {
      const std::size_t node = forward_.operator_of(events[e].sequence);
      run.backward[node] += seconds_between(e == 0 ? half : events[e].begun,
                                            e + 1 < events.size() ? events[e + 1].begun : end);
      run.sums[node] += events[e].sums;
    }
    return run;
  }

  [[nodiscard]] std::vector<double> peaks_in_forward(double behind_forward) const {
    std::vector<double> peaks = forward_.peaks();
    if (!peaks.empty()) {
      peaks.erase(peaks.begin());  // the peak before an operator belongs to the operator before it
      peaks.push_back(behind_forward);
    }
    return peaks;
  }

  [[nodiscard]] std::vector<double> peaks_in(const BackwardLog& backward) const {
    std::vector<double> peaks(forward_.peaks().size(), 0.0);
    for (const BackwardLog::Event& event : backward.events) {
      double& peak = peaks[forward_.operator_of(event.sequence)];
      peak = std::max(peak, event.peak);
    }
    return peaks;
  }

  const ModelTiming how_;
  const Partition partition_;
  StageRuntime runtime_;
  Tensors inputs_;
  ForwardLog forward_;
  std::int64_t step_ = 0;
};

}  // namespace

ModelTimes time_model(const Graph& graph,
                      const Tensors& inputs,
                      const Tensors& labels,
                      const ModelTiming& how) {
  if (how.repeats < 1 || how.threads < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("a model is timed at least once and on at least one thread; found {} "
                            "repeats and {} threads",
                            how.repeats,
                            how.threads));
  }
  return on_own_thread(how.threads, [&] {
    const at::AutoGradMode gradients(true);
    return Timing(graph, inputs, labels, how).run();
  });
}

}  // namespace stagecraft
