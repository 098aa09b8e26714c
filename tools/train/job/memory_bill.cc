#include "stagecraft/tools/train/job/memory_bill.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/state/trainer_state.h"
#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/strategy/sharing.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/train/decide/decide.h"
#include "stagecraft/tools/train/options/update_rule.h"

namespace stagecraft::tools {
namespace {

using Time = MemoryLine::Time;

// Measured: the memory that LibTorch and the actors take when they start, the memory of each
// worker, and the extra memory of the ranks' pools as a share of activations.
constexpr double kProgram = 64.0 * 1024 * 1024;
constexpr double kWorker = 4.0 * 1024 * 1024;
constexpr double kCudaPart = 235.0 * 1024 * 1024;  // of LibTorch, in each process with GPUs
constexpr double kCachedByPools = 1.0 / 4.0;

std::string_view name_of(Time time) {
  switch (time) {
    case Time::Always:
      return "always";
    case Time::Compiling:
      return "compiling";
    case Time::Run:
      return "in the run";
    case Time::Step:
      return "in a step";
    case Time::State:
      return "at save, load, end";
  }
  return "";
}

/// Returns the tightest limit of the machine's memory, or the limit of the GPUs'; null if there is
/// none.
const MemoryLimit* limit_of(const std::vector<MemoryLimit>& limits, bool gpus) {
  const auto found = std::ranges::find(limits, gpus, &MemoryLimit::of_gpus);
  return found == limits.end() ? nullptr : &*found;
}

/// Shared is the level that all copies have at least.
struct Shared {
  Sharing level = Sharing::Nothing;
  double bucket = std::numeric_limits<double>::infinity();  // most bytes of gradients in a sum

  [[nodiscard]] bool states() const { return level >= Sharing::States; }
  [[nodiscard]] bool gradients() const { return level >= Sharing::Gradients; }
  [[nodiscard]] bool weights() const { return level >= Sharing::Weights; }
};

Shared shared_by(const ReplicateOptions& options) {
  Shared shared{.level = options.sharing()};
  if (options.bucket_bytes) {
    shared.bucket = static_cast<double>(*options.bucket_bytes);
  }
  return shared;
}

Shared shared_by_all(const Choice& choice) {
  if (!choice.strategy) {
    return shared_by(choice.copies);
  }
  std::optional<Shared> all;
  for (const Directive& directive : choice.strategy->directives()) {
    if (const auto* replicate = std::get_if<ReplicateDirective>(&directive)) {
      const Shared one = shared_by(replicate->options);
      all = !all ? one
                 : Shared{.level = std::min(all->level, one.level),
                          .bucket = std::max(all->bucket, one.bucket)};
    }
  }
  return all.value_or(Shared());
}

/// Returns among how many ranks experts are divided at least; 1: each copy has all.
double parts_of_experts(const TrainOptions& options, const Choice& choice) {
  if (!choice.strategy) {
    return static_cast<double>(options.pipeline.ep);
  }
  std::optional<int> parts;
  for (const Directive& directive : choice.strategy->directives()) {
    if (const auto* shard = std::get_if<ShardDirective>(&directive)) {
      parts = std::min(parts.value_or(shard->part_count()), shard->part_count());
    }
  }
  return parts.value_or(1);
}

/// Returns on how many ranks a stage is, on average.
double copies_of_stages(const Layout& layout) {
  double copies = 0.0;
  for (int s = 0; s < layout.stages(); ++s) {
    copies += static_cast<double>(layout.ranks_of(StageId(s)).size());
  }
  return copies / layout.model_stages();
}

}  // namespace

MemoryBill::MemoryBill(const TrainOptions& options,
                       const Choice& choice,
                       const WorkBytes& work,
                       double activations) {
  const bool uses_gpus = options.workers.device != "cpu";
  const auto add = [this](Time time, const std::string& what, double bytes) {
    lines_.push_back({time, what, bytes});
  };
  const auto add_on_ranks = [&](Time time, const std::string& what, double bytes) {
    lines_.push_back({time, what, bytes, uses_gpus});
  };
  const double weights = work.parameters;
  const double held = work.on_stages > 0.0 ? work.on_stages : weights;
  const double optimized = work.optimized.value_or(held);  // has optimizer states
  const std::int64_t kept = kept_tensors(options.optimizer);
  const auto states = static_cast<double>(kept);
  const double replicas = copies_of_stages(choice.layout);
  const Shared shared = shared_by_all(choice);
  const double parts = parts_of_experts(options, choice);
  const double experts = parts > 1 ? std::min(work.experts, held) : 0.0;
  // The bytes on all ranks of what is `bytes` in one copy; each `parts` ranks
  // hold the experts once together.
  const auto on_ranks = [&](bool is_shared, double bytes) {
    const double divided = std::min(experts, bytes);
    const double in_parts = is_shared ? bytes - divided : 0.0;
    return in_parts + replicas * (bytes - divided - in_parts) + replicas / parts * divided;
  };
  const auto ranks = static_cast<double>(choice.layout.ranks());
  add(Time::Always, "weights of the model", weights);
  add(Time::Always, "modules and operators", work.description);
  if (work.buffers > 0.0) {
    add(Time::Always, "buffers of the model", work.buffers);
    add_on_ranks(Time::Run, "buffers of all ranks", replicas * work.buffers);
  }
  if (work.file > 0.0) {
    add(Time::Always, "contents of the model file", work.file);
  }
  add(Time::Compiling,
      "activations of one microbatch, in the module and in its replay",
      2 * work.microbatch);
  add(Time::Compiling, "inputs of one step", work.batch);
  const bool processes = options.workers.kind != WorkerKind::Threads;
  add(Time::Run,
      fmt::format("LibTorch and {}{}",
                  count_text(choice.layout.ranks(), "rank"),
                  processes ? ", each a process" : ""),
      (processes ? 1 + ranks : 1) * kProgram + ranks * kWorker);
  if (uses_gpus) {
    add(Time::Run, "LibTorch's CUDA part", (processes ? ranks : 1) * kCudaPart);
  }
  add_on_ranks(
      Time::Run,
      fmt::format("weights, gradients, {}{}{} of all ranks{}",
                  count_text(kept - (options.optimizer.average ? 1 : 0), "optimizer state"),
                  work.masters > 0.0 ? ", masters" : "",
                  options.optimizer.average ? ", averages" : "",
                  shared.weights()     ? ", shared"
                  : shared.gradients() ? ", gradients and states shared"
                  : shared.states()    ? ", states shared"
                  : experts > 0        ? ", experts divided"
                                       : ""),
      work.on_ranks.value_or(on_ranks(shared.weights(), held) + on_ranks(shared.gradients(), held) +
                             states * on_ranks(shared.states(), optimized) +
                             on_ranks(shared.states(), work.masters)));
  if (work.mirrors > 0.0) {
    add(Time::Run, "mirrors: copies of the ranks' states in the memory of others", work.mirrors);
  }
  if (options.run.verify) {
    const OneProcessBytes& one = work.one_process;
    add(Time::Run,
        fmt::format("--verify: the same in one process{}", one.trainings > 1 ? ", twice" : ""),
        one.trainings * (2 * held + states * optimized + work.masters + work.buffers));
    if (one.sums > 0.0) {
      add(Time::Run, "--verify: sums of the copies, in the order of the ranks", one.sums);
    }
    if (one.microbatch > 0.0) {
      add(Time::Step, "--verify: activations and gradients of one microbatch", one.microbatch);
    }
  }
  add_on_ranks(Time::Step, "activations of all ranks", activations);
  add_on_ranks(Time::Step, "memory cached by the pools of the ranks", kCachedByPools * activations);
  add_on_ranks(Time::Step, "gradients of one microbatch", on_ranks(false, held));
  if (experts > 0 && options.run.eval_every) {
    add_on_ranks(Time::Step,
                 "experts of two regions a rank that an evaluation gathers",
                 std::min(replicas * experts, 2 * ranks * work.region));
  }
  if (shared.gradients()) {
    add_on_ranks(
        Time::Step,
        fmt::format("whole gradients{} of two buckets a rank",
                    shared.weights() ? " and weights" : ""),
        ranks * (shared.weights() ? 4 : 2) * std::min(shared.bucket, replicas * held / ranks));
  } else if (shared.states()) {
    add_on_ranks(Time::Step, "parts of sums that ranks update with", held);
  }
  add(Time::Step, "inputs and their copies on the ranks", 2 * work.batch);
  const double state = held + states * optimized + work.masters;
  const double piece = std::min(state, static_cast<double>(kReadBytes));
  const double loading = 2 * state / choice.layout.model_stages();
  const double saving = 2 * piece + std::min(state - piece, static_cast<double>(kHeldBytes));
  // Averages are read with the weights, and compared beside those that were compared before.
  const int read = !options.optimizer.average      ? 1
                   : options.run.verify            ? 3
                   : options.keeping.save_averages ? 2
                                                   : 1;
  add(Time::State,
      "weights read at the end, and the state of one stage on its way",
      read * weights + std::max(loading, saving));
}

double MemoryBill::sum(Time time, bool on_gpus) const {
  double bytes = 0.0;
  for (const MemoryLine& line : lines_) {
    bytes += line.time == time && line.on_gpus == on_gpus ? line.bytes : 0.0;
  }
  return bytes;
}

double MemoryBill::to_compile() const {
  return sum(Time::Always) + sum(Time::Compiling);
}

/// Returns the sum of a run's lines, or of compiling if that is more (keeps MB-1).
double MemoryBill::to_run() const {
  const double running = sum(Time::Always) + sum(Time::Run) + sum(Time::Step) + sum(Time::State);
  return std::max(to_compile(), running);
}

double MemoryBill::on_gpus() const {
  return sum(Time::Run, true) + sum(Time::Step, true);
}

bool MemoryBill::fits(const std::vector<MemoryLimit>& limits) const {
  const MemoryLimit* const machine = limit_of(limits, false);
  const MemoryLimit* const gpus = limit_of(limits, true);
  return (machine == nullptr || to_run() <= machine->bytes) &&
         (gpus == nullptr || on_gpus() <= gpus->bytes);
}

std::string MemoryBill::text(const std::vector<MemoryLimit>& limits) const {
  std::vector<std::vector<std::string>> rows;
  for (const MemoryLine& line : lines_) {
    rows.push_back({line.what,
                    fmt::format("{}{}", name_of(line.time), line.on_gpus ? ", on the GPUs" : ""),
                    bytes_text(line.bytes)});
  }
  rows.push_back({"in total, to compile", "", bytes_text(to_compile())});
  rows.push_back({"in total, to run", "", bytes_text(to_run())});
  if (on_gpus() > 0.0) {
    rows.push_back({"in total, on the GPUs", "", bytes_text(on_gpus())});
  }
  for (const MemoryLimit& limit : limits) {
    rows.push_back({fmt::format("left by {}", limit.who), "", bytes_text(limit.bytes)});
  }
  return table_text({"memory", "held", "bytes"}, rows);
}

nlohmann::ordered_json MemoryBill::json(const std::vector<MemoryLimit>& limits) const {
  nlohmann::ordered_json object{{"to_compile_bytes", number_json(to_compile())},
                                {"to_run_bytes", number_json(to_run())},
                                {"on_gpus_bytes", number_json(on_gpus())},
                                {"fits", fits(limits)},
                                {"lines", nlohmann::ordered_json::array()},
                                {"limits", nlohmann::ordered_json::array()}};
  for (const MemoryLine& line : lines_) {
    object["lines"].push_back({{"time", name_of(line.time)},
                               {"what", line.what},
                               {"bytes", number_json(line.bytes)},
                               {"on_gpus", line.on_gpus}});
  }
  for (const MemoryLimit& limit : limits) {
    object["limits"].push_back({{"who", limit.who}, {"bytes", number_json(limit.bytes)}});
  }
  return object;
}

}  // namespace stagecraft::tools
