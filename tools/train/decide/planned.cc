#include "stagecraft/tools/train/decide/planned.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/profile/planning.h"
#include "stagecraft/actors/profile/profile.h"
#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/median.h"
#include "stagecraft/compiler/cut/planned_cut.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/scheduler/costs/noise_warning.h"
#include "stagecraft/tools/train/decide/gpu_memory.h"
#include "stagecraft/tools/train/decide/planned_sizes.h"
#include "stagecraft/tools/train/options/update_rule.h"

namespace stagecraft::tools {
namespace {

/// Returns the median of all but the first step, which warms up.
double usual_step(std::vector<double> seconds) {
  if (seconds.size() > 1) {
    seconds.erase(seconds.begin());
  }
  return median(std::move(seconds));
}

}  // namespace

PlannedRun plan_run(const TrainOptions& options,
                    const StepSize& size,
                    Work& work,
                    Console& console) {
  const SingleThreaded alone;  // this thread's computation must not start a pool of helper threads
  const WorkShape whole = WorkShape::uncut(
      static_cast<int>(size.microbatches_of(1).value_or(kUsualMicrobatches)), size.microbatch_size);
  const PlannedSizes sizes = planned_sizes(options, whole);
  if (!sizes.note.empty()) {
    console.err << fmt::format("plan: note: {}\n", sizes.note);
  }
  const Program program = compile_in(options.pipeline.precision, work, whole);
  const WorkBatch batch = work.batch(0, whole);
  const Profile found =
      profile(program,
              batch.inputs,
              batch.labels,
              {.microbatch_sizes = sizes.samples,
               .threads = static_cast<int>(options.workers.threads),
               .optimizer = make_optimizer(options.optimizer),
               .master_weights = options.optimizer.master_weights,
               .ranks = options.workers.kind == WorkerKind::Processes ? RankHomes::Processes
                                                                      : RankHomes::Threads,
               .progress = [&](std::string_view what, int place, int all) {
                 if (!options.run.quiet) {
                   console.err << fmt::format("plan: {} of {}: {}\n", place, all, what);
                 }
               }});
  for (const std::string& note : found.notes) {
    console.err << fmt::format("plan: note: {}\n", note);
  }
  if (found.measured == 0 && !options.run.quiet) {
    console.err << "plan: all was measured before\n";
  }
  const int ranks = static_cast<int>(options.pipeline.ranks.value_or(options.pipeline.usual_ranks));
  PlanningOptions how{.planner = *options.planner.name,
                      .processors = static_cast<int>(std::thread::hardware_concurrency())};
  how.may_share = options.workers.device == "cpu";
  how.memory = gpu_memory_of_each(options, ranks);
  if (std::isfinite(how.memory)) {
    console.err << fmt::format(
        "plan: note: plans for {} on each rank's GPU, with times measured on this machine's "
        "processors\n",
        bytes_text(how.memory));
  }
  if (options.workers.memory_limit) {
    how.memory = static_cast<double>(*options.workers.memory_limit);
  }
  std::vector<PlanProposal> best_first = plan(program, found.costs, ranks, how);
  const PlanProposal& best = best_first.front();
  PlanRequest request{.costs = found.costs,
                      .devices = ranks,
                      .batch = best.microbatches * best.candidate.microbatch_size,
                      .memory = how.memory};
  request.costs.device.processors = how.processors;
  Cut cut = planned_cut(found.costs, best);
  return {std::move(cut), std::move(request), std::move(best_first)};
}

std::string chosen_text(const PlannedRun& planned) {
  const Candidate& best = planned.best().candidate;
  return fmt::format("planned: {} of {}, {} by {} on {}\n",
                     count_text(planned.best().microbatches, "microbatch"),
                     best.microbatch_size,
                     best.schedule_name,
                     best.planner,
                     count_text(planned.request.devices, "rank"));
}

std::string planned_text(const PlannedRun& planned, const std::vector<double>& seconds) {
  const double measured = usual_step(seconds);
  const double noise = planned.request.costs.device.noise;
  return fmt::format("planned {:.1f} ms a step, measured {:.1f} ({:+.1f} %{})\n",
                     planned.best().step * 1e3,
                     measured * 1e3,
                     100 * (measured / planned.best().step - 1),
                     noise_warning(noise)
                         ? fmt::format("; the profile had a noise of {:.0f} %", 100 * noise)
                         : "");
}

nlohmann::ordered_json planned_json(const PlannedRun& planned, const std::vector<double>& seconds) {
  const double noise = planned.request.costs.device.noise;
  nlohmann::ordered_json object{{"event", "planned"},
                                {"planner", planned.best().candidate.planner},
                                {"schedule", planned.best().candidate.schedule_name},
                                {"microbatches", planned.best().microbatches},
                                {"microbatch_size", planned.best().candidate.microbatch_size},
                                {"predicted_seconds", planned.best().step},
                                {"measured_seconds", usual_step(seconds)},
                                {"noise", noise}};
  if (const auto warning = noise_warning(noise)) {
    object["warnings"] = {*warning};
  }
  return object;
}

}  // namespace stagecraft::tools
