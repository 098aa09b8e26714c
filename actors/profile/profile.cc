#include "stagecraft/actors/profile/profile.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include <ATen/Version.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/profile/model_times.h"
#include "stagecraft/actors/profile/overhead.h"
#include "stagecraft/actors/profile/placed_times.h"
#include "stagecraft/actors/profile/profile_cache.h"
#include "stagecraft/actors/profile/split_cost.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/median.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/measure/operator_costs.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/computing_type.h"
#include "stagecraft/compiler/shapes/shape_captures.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int kAloneRepeats = 3;  // only the ratios of these times are used

[[noreturn]] void refuse(const std::string& text) {
  throw Error(Errc::UsageArgument, text);
}

/// Returns processor and instruction set: machines of one kind share profiles.
std::string device_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (line.starts_with("model name")) {
      return fmt::format("{} ({})", line.substr(line.find(':') + 2), at::get_cpu_capability());
    }
  }
  return fmt::format("unknown processor ({})", at::get_cpu_capability());
}

/// Returns the rows of the first tensor that is split; 0: none is.
std::int64_t samples_of(const Batch& batch) {
  const auto split = std::ranges::find(batch, false, &BatchTensor::replicated);
  return split == batch.end() ? 0 : split->tensor.size(0);
}

/// Returns the samples of a microbatch as compiled; 0: no input is split.
std::int64_t own_samples(const CompiledProgram& program) {
  const auto split = std::ranges::find(program.inputs, false, &BatchSlice::replicated);
  return split == program.inputs.end() ? 0 : split->sizes[0];
}

/// Returns the first rows of every tensor that is split, copied into the program's memory order.
Tensors first_rows(const Batch& batch,
                   const std::vector<BatchSlice>& compiled,
                   std::int64_t samples,
                   std::int64_t all,
                   const char* what) {
  Tensors rows;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    at::Tensor tensor = batch[i].tensor;
    if (!batch[i].replicated && samples != all) {
      if (tensor.size(0) % all != 0) {
        refuse(
            fmt::format("{} tensor {} has {} rows, which {} samples cannot share equally; pass a "
                        "batch in which every sample has equally many",
                        what,
                        i,
                        tensor.size(0),
                        all));
      }
      tensor = tensor.narrow(0, 0, tensor.size(0) / all * samples);
    }
    const bool alike = i < compiled.size() && std::ssize(compiled[i].sizes) == tensor.dim();
    rows.push_back(copied_in_order(tensor, alike ? compiled[i].order : memory_order_of(tensor)));
  }
  return rows;
}

/// Returns all parts of a graph that decide its times; its stage marks do not.
std::string text_of(const Graph& graph) {
  std::string text;
  for (const Value& value : graph.values) {
    text += fmt::format("{} {} {} {} {} {}\n",
                        static_cast<int>(value.kind),
                        value.position,
                        at::toString(value.dtype),
                        fmt::join(value.sizes, "x"),
                        fmt::join(value.order, " "),
                        value.requires_grad);
  }
  const std::string operators = to_string(graph);
  std::size_t begin = 0;
  for (const Node& node : graph.nodes) {
    const std::size_t end = operators.find('\n', begin);
    const std::size_t made = std::min(operators.find(" = ", begin), end);
    text += operators.substr(made, end - made);
    text +=
        fmt::format(" autocast {} {}\n", node.autocast.enabled, at::toString(node.autocast.dtype));
    begin = end + 1;
  }
  return text;
}

std::string text_of(const Optimizer& optimizer) {
  std::string text(optimizer_name(optimizer));
  for (const OptimizerSetting& setting : settings_of(optimizer)) {
    text += fmt::format(" {}={}", setting.name, setting.value);
  }
  return text;
}

/// Errors: CompileShape if another size has other operators. Keeps PRF-2.
void check_alike(const Graph& graph, int samples, const Graph& other, int others) {
  const auto refuse_shape = [&](const std::string& what) {
    throw Error(Errc::CompileShape,
                fmt::format("on microbatches of {} and {} samples the model has other operators: "
                            "{}; profile one size at a time",
                            samples,
                            others,
                            what));
  };
  for (std::size_t n = 0; n < std::min(graph.nodes.size(), other.nodes.size()); ++n) {
    const std::string one = operator_name(graph.nodes[n]);
    const std::string two = operator_name(other.nodes[n]);
    if (one != two) {
      refuse_shape(fmt::format("op:{} is {} and {}", n, one, two));
    }
  }
  if (graph.nodes.size() != other.nodes.size()) {
    refuse_shape(
        fmt::format("there are {} and {} of them", graph.nodes.size(), other.nodes.size()));
  }
}

class Profiler {
 public:
  Profiler(const Program& program,
           const Batch& inputs,
           const Batch& labels,
           const ProfileOptions& options)
      : program_(program.compiled()),
        shapes_(program.shape_captures()),
        inputs_(inputs),
        labels_(labels),
        options_(options),
        all_(samples_of(inputs)),
        own_(own_samples(program_)),
        device_(device_name()),
        cache_(options.cache) {
    if (options.repeats < 1 || options.threads < 1) {
      refuse(fmt::format("a profile needs at least one repeat and one thread; found {} and {}",
                         options.repeats,
                         options.threads));
    }
    sizes_ = options.microbatch_sizes;
    if (sizes_.empty()) {
      sizes_.push_back(static_cast<int>(std::max<std::int64_t>(1, own_)));
    }
    check_sizes();
  }

  Profile run() {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      add_size(i);
    }
    add_links();
    add_overhead();
    profile_.costs.device.name = device_;
    profile_.costs.device.threads = options_.threads;
    profile_.costs.device.precision = computing_type(program_.graph);
    profile_.notes = cache_.take_notes();
    std::ranges::move(notes_, std::back_inserter(profile_.notes));
    return std::move(profile_);
  }

 private:
  void check_sizes() const {
    std::vector<int> sorted = sizes_;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      refuse(fmt::format("microbatch size {} appears twice; keep one", *twice));
    }
    const std::int64_t most = std::max<std::int64_t>(1, all_);
    if (sorted.front() < 1 || sorted.back() > most) {
      refuse(fmt::format("microbatch sizes are from 1 to {}, the samples of the batch; found {}",
                         most,
                         sorted.front() < 1 ? sorted.front() : sorted.back()));
    }
  }

  void tell(const std::string& what, std::size_t place) const {
    if (options_.progress) {
      options_.progress(what, static_cast<int>(place) + 1, static_cast<int>(sizes_.size()) + 1);
    }
  }

  void add_size(std::size_t i) {
    const int samples = sizes_[i];
    tell("microbatches of " + count_text(samples, "sample"), i);
    const std::int64_t all = std::max<std::int64_t>(1, all_);
    const Tensors inputs = first_rows(inputs_, program_.inputs, samples, all, "input");
    const Tensors labels = first_rows(labels_, program_.labels, samples, all, "label");
    auto graph = std::make_unique<Graph>(graph_of(samples, inputs, labels));
    if (first_graph_) {
      check_alike(*first_graph_, sizes_.front(), *graph, samples);
    }
    const std::string key = fmt::format("{}{}{}\nsamples {} threads {} on {}\nLibTorch {}\n",
                                        text_of(*graph),
                                        text_of(options_.optimizer),
                                        options_.master_weights ? " of masters" : "",
                                        samples,
                                        options_.threads,
                                        device_,
                                        TORCH_VERSION);
    std::optional<Costs> known;
    if (!options_.fresh) {
      known = cache_.find(key, [&](const Costs& costs) {
        return costs.operators.size() == graph->nodes.size() && costs.samples == samples &&
               costs.stages.usual.forward > 0;
      });
    }
    if (!known) {
      known = measured(*graph, i, inputs, labels);
      if (noise_warning(known->device.noise, options_.most_noise)) {
        notes_.push_back(fmt::format(
            "the machine is busy: microbatches of {} were measured {} times, with a noise "
            "of {:.0f} % at best; the figures are used now and not kept",
            count_text(samples, "sample"),
            kMostTries,
            100 * known->device.noise));
      } else {
        cache_.keep(key, *known);  // keeps PRF-4
      }
      ++profile_.measured;
    }
    add(std::move(*known), i);
    first_graph_ = first_graph_ ? std::move(first_graph_) : std::move(graph);
  }

  [[nodiscard]] Graph graph_of(int samples, const Tensors& inputs, const Tensors& labels) const {
    if (samples == own_ || all_ == 0) {
      return program_.graph;
    }
    if (shapes_ == nullptr) {
      throw Error(
          Errc::CompileShape,
          fmt::format("the program no longer has a module to capture for microbatches of {} "
                      "samples; profile microbatches of {}",
                      samples,
                      own_));
    }
    return shapes_->graph_of(inputs, labels);
  }

  /// Returns the costs of one size as the cache keeps them: `stages.usual` holds the whole
  /// microbatch.
  [[nodiscard]] Costs measured(const Graph& graph,
                               std::size_t size,
                               const Tensors& inputs,
                               const Tensors& labels) const {
    Costs costs;
    costs.samples = sizes_[size];
    costs.operators = measure_operators(
        graph, inputs, labels, {.repeats = kAloneRepeats, .threads = options_.threads});
    const ModelTiming how{.repeats = options_.repeats,
                          .threads = options_.threads,
                          .optimizer = options_.optimizer,
                          .master_weights = options_.master_weights};
    ModelTimes times = time_model(graph, inputs, labels, how);
    for (int tries = 1; tries < kMostTries && noise_of(times.microbatches) > options_.most_noise;
         ++tries) {
      tell(fmt::format("microbatches of {} again, as the noise was {:.0f} %",
                       count_text(costs.samples, "sample"),
                       100 * noise_of(times.microbatches)),
           size);
      ModelTimes again = time_model(graph, inputs, labels, how);
      if (noise_of(again.microbatches) < noise_of(times.microbatches)) {
        times = std::move(again);
      }
    }
    place_times(times, costs.operators);
    place_peaks(times, costs.operators);
    costs.parameters = place_updates(graph.parameters,
                                     times.update,
                                     static_cast<int>(state_names(options_.optimizer).size()),
                                     options_.master_weights,
                                     costs.operators);
    const SplitCost split = measure_split(graph, inputs, labels, how);
    costs.device = {.name = device_,
                    .threads = options_.threads,
                    .noise = noise_of(times.microbatches),
                    .split = split.time,
                    .split_bytes = place_waiting(split.waiting, costs.operators)};
    costs.stages.usual.forward = median(times.microbatches);
    return costs;
  }

  void add(Costs known, std::size_t i) {
    Costs& costs = profile_.costs;
    profile_.microbatch_seconds.push_back(known.stages.usual.forward);
    costs.device.noise = std::max(costs.device.noise, known.device.noise);
    if (i == 0) {
      costs.samples = known.samples;
      costs.device.split = known.device.split;
      costs.device.split_bytes = known.device.split_bytes;
      costs.operators = std::move(known.operators);
      costs.parameters = std::move(known.parameters);
      return;
    }
    for (OperatorCost& cost : known.operators) {  // the first size has these values
      cost.reads.clear();
      cost.parameters.clear();
      cost.joined = false;
      cost.update = 0;
    }
    costs.operators_at.emplace(known.samples, std::move(known.operators));
  }

  void add_overhead() {
    const std::string key = fmt::format("overhead on {}\nLibTorch {}\n", device_, TORCH_VERSION);
    std::optional<Costs> known;
    if (!options_.fresh) {
      known = cache_.find(key, [&](const Costs& costs) { return costs.device.name == device_; });
    }
    if (!known) {
      const Overhead overhead = measure_overhead();
      known.emplace();
      known->device = {.name = device_, .task = overhead.task, .step = overhead.step};
      cache_.keep(key, *known);
      ++profile_.measured;
    }
    profile_.costs.device.task = known->device.task;
    profile_.costs.device.step = known->device.step;
  }

  void add_links() {
    tell("transfers between ranks", sizes_.size());
    const std::string key =
        fmt::format("links and sums between {} on {}\n",
                    options_.ranks == RankHomes::Threads ? "threads" : "processes",
                    device_);
    std::optional<Costs> known;
    if (!options_.fresh) {
      known = cache_.find(key, [&](const Costs& costs) { return costs.device.name == device_; });
    }
    if (!known) {
      known.emplace();
      known->device.name = device_;
      known->links = measure_links(options_.ranks);
      cache_.keep(key, *known);
      ++profile_.measured;
    }
    profile_.costs.links = known->links;
  }

  const CompiledProgram& program_;
  const std::shared_ptr<ShapeCaptures> shapes_;
  const Batch& inputs_;
  const Batch& labels_;
  const ProfileOptions& options_;
  const std::int64_t all_;  ///< samples of the batch; 0: it is not split
  const std::int64_t own_;  ///< of the program's microbatches
  const std::string device_;
  ProfileCache cache_;
  std::vector<int> sizes_;
  std::unique_ptr<const Graph> first_graph_;
  Profile profile_;
  std::vector<std::string> notes_;  ///< about sizes that were too noisy
};

}  // namespace

Profile profile(const Program& program,
                const Batch& inputs,
                const Batch& labels,
                const ProfileOptions& options) {
  return Profiler(program, inputs, labels, options).run();
}

}  // namespace stagecraft
