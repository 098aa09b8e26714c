#include "stagecraft/actors/trainer/launch_crew.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/trainer/steps/kept_futures.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"

namespace stagecraft {
namespace {

void tell_of_buffers(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    log(Level::Warning, "buffers will differ from those of one process", {{"note", note}});
  }
}

/// Helper threads of LibTorch's pools spin while they wait only if each has a processor. If not,
/// they must be woken up.
void warn_of_too_many_threads(const Plan& plan, int threads_per_worker) {
  const auto threads = plan.ranks.size() * static_cast<std::size_t>(threads_per_worker);
  const auto processors = static_cast<std::size_t>(std::thread::hardware_concurrency());
  if (threads_per_worker > 1 && threads > processors) {
    static std::once_flag once;
    std::call_once(once, [&] {
      log(Level::Warning,
          "more threads than processors: operators will wait for each other's threads to wake up",
          {{"ranks", plan.ranks.size()},
           {"threads_per_worker", threads_per_worker},
           {"processors", processors}});
    });
  }
}

/// Returns the name under which ranks leave their copies: that of the run, and of what says which
/// state each rank has. A rank sees if its own copies are of another state, but not if those are
/// which it keeps for another rank.
std::string name_of_copies(const std::string& run, const Execution& execution) {
  const std::string states =
      fmt::format("{}{}\n{}",
                  to_string(execution.strategy),
                  fmt::join(execution.sized.parameter_names(), " "),
                  fmt::join(execution.sized.compiled().assignment.stage_of, " "));
  return run.empty() ? "" : fmt::format("{} {:016x}", run, std::hash<std::string>()(states));
}

}  // namespace

std::chrono::milliseconds longest_wait_for_values(const TrainerOptions& options) {
  constexpr std::chrono::milliseconds kMost = std::chrono::hours(24 * 365);
  const std::int64_t steps = std::int64_t{options.outstanding} + 1;
  return patience(options) > kMost / steps ? kMost : steps * patience(options);
}

std::unique_ptr<Crew> launch_crew(const Cluster& cluster,
                                  const std::shared_ptr<StepLedger>& ledger,
                                  const Execution& execution,
                                  const Optimizer& optimizer,
                                  const TrainerOptions& options) {
  tell_of_buffers(execution.notes);
  warn_of_too_many_threads(*execution.plan, options.threads_per_worker);
  process_end::arm();
  expect_threads();
  Job job{.program = execution.sized.shared(),
          .train = execution.plan,
          .optimizer = optimizer,
          .options = options,
          .has_driver_row = execution.has_driver_row};
  if (options.dispatch == Dispatch::PerTask) {
    job.columns = std::make_shared<const DispatchColumns>(dispatch_columns(
        *job.train, execution.schedule, execution.layout, execution.stage_graph()));
  } else if (options.dispatch == Dispatch::Decided) {
    job.decidable = std::make_shared<const DecidableTasks>(
        decidable_tasks(*job.train, execution.schedule, execution.layout, execution.stage_graph()));
  }
  job.options.run = name_of_copies(options.run, execution);
  job.options.tells_values = options.on_column || options.decide;
  if (options.column_tensors) {
    const Rank drivers = execution.has_driver_row ? execution.plan->ranks.back().rank : kDriver;
    job.task_values =
        [actors = cluster.actors(), drivers, limit = longest_wait_for_values(options)](
            const StepValues::Place& made, std::size_t count) {
          return made.rank == drivers ? values_on_driver(count)
                                      : task_values(*actors, made, count, limit);
        };
    for (int rank = 0; rank < execution.layout.ranks(); ++rank) {
      if (Rank(rank) != drivers) {
        cluster.actors()->begin(Rank(rank));
      }
    }
  }
  return std::make_unique<Crew>(*cluster.launcher(), ledger, std::move(job));
}

}  // namespace stagecraft
