#include "stagecraft/tools/train/job/memory_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/notes/sharing_misfit.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/schedule_figures.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/decide/decide.h"
#include "stagecraft/tools/train/job/memory_bill.h"

namespace stagecraft::tools {
namespace {

constexpr std::array<std::string_view, 4> kOptionOfLevel{
    "", "shard_optimizer", "shard_grads", "shard_params"};

/// RunMemory is what a bill is made of.
struct RunMemory {
  TrainOptions options;
  Choice choice;
  WorkBytes work;
  double activations = 0.0;

  [[nodiscard]] MemoryBill bill() const { return {options, choice, work, activations}; }
};

double needed(const MemoryBill& bill, const RunMemory& run, bool gpus) {
  return gpus ? bill.on_gpus() : run.options.run.dry_run ? bill.to_compile() : bill.to_run();
}

/// Returns the highest level that the copies of the run could share at (docs/strategies.md).
int highest_level(const RunMemory& run) {
  bool copies = false;
  for (int s = 0; s < run.choice.layout.stages(); ++s) {
    copies |= run.choice.layout.ranks_of(StageId(s)).size() > 1;
  }
  const bool in_schedule = run.choice.layout.replicas() > 1;
  int level = run.options.workers.device == "cpu" && (copies || in_schedule) ? 3 : 0;
  const Schedule& schedule = run.choice.schedule;
  while (in_schedule && level > 0 &&
         sharing_misfit(schedule, schedule.stage_graph(), static_cast<Sharing>(level))) {
    --level;
  }
  return level;
}

/// Returns the run with copies that share at a level.
RunMemory at_level(const RunMemory& run, Sharing level) {
  RunMemory shared = run;
  shared.work.on_ranks.reset();
  if (OneProcessBytes& one = shared.work.one_process;
      level >= Sharing::Gradients && one.trainings > 1) {
    // At most one round of sums for each microbatch.
    one.sums = std::max(one.sums, run.choice.shape.microbatches * run.work.on_stages);
  }
  if (!run.choice.strategy) {
    shared.choice.copies = sharing_of(run.options.pipeline, level);
    return shared;
  }
  std::vector<Directive> directives = run.choice.strategy->directives();
  for (Directive& directive : directives) {
    if (auto* replicate = std::get_if<ReplicateDirective>(&directive)) {
      replicate->options.share(level);
    }
  }
  shared.choice.strategy = Strategy(std::move(directives));
  return shared;
}

/// Returns the chain's or the graph's 1F1B if it keeps fewer activations than the run's schedule.
std::optional<std::string_view> leaner_schedule(const RunMemory& run) {
  if (run.choice.strategy || run.options.planner.name) {
    return std::nullopt;  // has no --schedule
  }
  const Schedule& schedule = run.choice.schedule;
  const StageGraph graph = schedule.stage_graph();
  if (!validate(schedule, graph).empty()) {
    return std::nullopt;  // its order follows the edges of --graph
  }
  const auto rows = static_cast<int>(schedule.rows().size());
  // Stage s of 1F1B keeps S - s microbatches.
  if (schedule_figures(schedule, graph, {}).peak_microbatches <=
      std::min(rows, schedule.microbatches())) {
    return std::nullopt;
  }
  return graph.is_chain() ? "1f1b" : "dag-1f1b";
}

/// Returns what keeps less of activations and is not in use yet.
std::string leaner_options(const RunMemory& run) {
  std::vector<std::string> ways;
  if (run.options.pipeline.recompute != Recompute::stages()) {
    ways.emplace_back("--recompute stage");
  }
  if (run.options.pipeline.precision == Precision::Float32) {
    ways.emplace_back(run.options.model.file ? "--precision bf16 if the model is in float32"
                                             : "--precision bf16");
  }
  if (const auto schedule = leaner_schedule(run)) {
    ways.push_back(fmt::format("--schedule {}", *schedule));
  }
  if (!run.options.model.file) {  // whose data say what a step has
    ways.emplace_back("a smaller --microbatch-size");
  }
  ways.emplace_back("more stages");
  return words_text(ways);
}

/// Returns what would make the run fit.
std::string advice(const RunMemory& run, double limit, bool gpus) {
  if (run.options.run.dry_run) {
    return "";
  }
  // Before the model is compiled, activations are a lower bound.
  const std::string_view would = run.work.on_stages > 0.0 ? "would" : "may";
  const int highest = highest_level(run);
  for (int level = 1; level <= highest; ++level) {
    const double less = needed(at_level(run, static_cast<Sharing>(level)).bill(), run, gpus);
    if (less <= limit && less < needed(run.bill(), run, gpus)) {
      return fmt::format(
          "; {} {} fit, with {}",
          run.choice.strategy
              ? fmt::format("{} at each replicate", kOptionOfLevel[static_cast<std::size_t>(level)])
              : fmt::format("--zero {}", level),
          would,
          bytes_text(less));
    }
  }
  RunMemory without = run;
  without.activations = 0.0;
  const double rest = needed(without.bill(), run, gpus);
  return rest <= limit
             ? fmt::format("; without activations {}: {} keep less of them",
                           bytes_text(rest),
                           leaner_options(run))
             : fmt::format(
                   "; {} even without activations: weights, gradients and the optimizer's "
                   "states need a smaller model, or copies that share them (--dp, --zero) "
                   "on more machines",
                   bytes_text(rest));
}

void check(const RunMemory& run, const std::vector<MemoryLimit>& limits, bool gpus) {
  const auto limit = std::ranges::find(limits, gpus, &MemoryLimit::of_gpus);  // the tightest
  if (limit == limits.end()) {
    return;
  }
  const MemoryBill bill = run.bill();
  const double bytes = needed(bill, run, gpus);
  if (bytes > limit->bytes) {
    throw Error(Errc::DeviceOutOfMemory,
                fmt::format("memory does not suffice: {} needed, {} left by {}{}\n\n{}",
                            bytes_text(bytes),
                            bytes_text(limit->bytes),
                            limit->who,
                            advice(run, limit->bytes, gpus),
                            bill.text(limits)));
  }
}

}  // namespace

void check_memory(const TrainOptions& options,
                  const Choice& choice,
                  const WorkBytes& work,
                  double activations,
                  const std::vector<MemoryLimit>& limits) {
  const RunMemory run{options, choice, work, activations};
  check(run, limits, /*gpus=*/false);
  if (!options.run.dry_run) {
    check(run, limits, /*gpus=*/true);
  }
}

}  // namespace stagecraft::tools
