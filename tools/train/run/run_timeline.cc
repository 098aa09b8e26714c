#include "stagecraft/tools/train/run/run_timeline.h"

#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/scheduler/measured/comparison.h"
#include "stagecraft/scheduler/measured/costs_of_run.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/trace/report.h"
#include "stagecraft/tools/trace/trace_of_plan.h"

namespace stagecraft::tools {
namespace {

/// Returns the text of the run's schedule. The model knows which stages are frozen.
std::string traced_schedule(const TrainJob& job) {
  const Schedule& schedule = job.choice.schedule;
  const std::vector<int> frozen = job.execution.stage_graph().frozen();
  if (frozen.empty()) {
    return to_string(schedule);
  }
  Schedule::Headers headers = schedule.headers();
  headers.graph = schedule.stage_graph();
  headers.graph->freeze(frozen);
  return to_string(Schedule(schedule.form(), schedule.rows(), std::move(headers)));
}

}  // namespace

RunTimeline::RunTimeline(const TrainJob& job,
                         const Plan& plan,
                         const std::vector<std::string>& stages)
    : job_(job),
      plan_(plan),
      header_{.ranks = stages,
              .threads_per_worker = static_cast<int>(job.options.workers.threads),
              .processors = static_cast<int>(std::thread::hardware_concurrency()),
              .schedule = traced_schedule(job),
              .planned_with = job.costs} {
  const bool makes_steps = job.start.resumed_at != job.choice.steps;  // else an older trace stays
  if (job.options.keeping.trace && makes_steps) {
    trace_.emplace(*job.options.keeping.trace, header_);
  }
}

std::shared_ptr<const MeasuredStep> RunTimeline::add(const StepResult& result) {
  for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
    if (result.timelines[r].size() != plan_.list_of(Rank(r)).instructions.size()) {
      log(Level::Warning,
          "step left out of the trace: the timeline of a rank is missing",
          {{"step", result.step}, {"rank", plan_.ranks[r].rank}});
      return nullptr;
    }
  }
  const TraceStep step = trace_step(result.step, plan_, job_.choice.layout, result.timelines);
  auto measured = std::make_shared<const MeasuredStep>(measured_step(step, job_.choice.layout));
  measured_.add(*measured);
  if (trace_) {
    trace_->write(step);
  }
  return measured;
}

void RunTimeline::report(Progress& progress, bool all) const {
  if (measured_.steps() == 0) {
    return;
  }
  const Layout& layout = job_.choice.layout;
  const Comparison comparison = compare(job_.choice.schedule,
                                        job_.execution.stage_graph(),
                                        job_.costs ? job_.costs->costs : measured_.costs(),
                                        measured_);
  nlohmann::ordered_json event{{"event", "planned_against_measured"}};
  event.update(comparison_json(comparison, measured_, layout, header_, 0));
  progress.report(all ? comparison_text(comparison, measured_, layout, header_) + "\n"
                      : comparison_summary(comparison, measured_, layout, header_),
                  event);
}

void RunTimeline::write_costs(Console& console) const {
  if (job_.costs_out && measured_.steps() == 0) {
    throw Error(Errc::UsageFile,
                "--costs-out expects a step that was measured, but the results of all were lost: "
                "start the run again with more --steps");
  }
  if (job_.costs_out) {
    const Costs costs = costs_of_run(measured_, *job_.costs_out, job_.execution.stage_graph());
    write_output(*job_.options.costs.out, to_json(costs), console);
  }
}

void RunTimeline::close() {
  if (trace_) {
    trace_->close();
  }
}

}  // namespace stagecraft::tools
