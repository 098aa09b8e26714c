#include "stagecraft/tools/schedule/input/cost_options.h"

#include <cmath>
#include <optional>
#include <ostream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/costs/backward_times.h"
#include "stagecraft/scheduler/costs/costs_misfit.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kTimes[] = {"--f", "--b", "--i", "--w", "--latency"};

/// Returns the durations on the command line. If they give only the whole backward or only its
/// halves, computes the other.
Durations stated(const CLI::App& app, const CostOptions& options, Console& console) {
  const auto given = [&](const char* name, double value) {
    return app.count(name) > 0 ? std::optional(value) : std::nullopt;
  };
  const Durations& said = options.durations;
  const Durations usual;
  Durations times;
  times.forward = said.forward;
  try {
    const auto made = set_backward(times,
                                   {.whole = given("--b", said.backward),
                                    .input = given("--i", said.backward_input),
                                    .weight = given("--w", said.backward_weight)},
                                   true);
    const bool as_usual = times.backward == usual.backward &&
                          times.backward_input == usual.backward_input &&
                          times.backward_weight == usual.backward_weight;
    if (made && !as_usual) {
      console.err << fmt::format("note: the command line {} (B {}, I {}, W {})\n",
                                 *made,
                                 number_text(times.backward),
                                 number_text(times.backward_input),
                                 number_text(times.backward_weight));
    }
  } catch (const Error& error) {
    wrong_usage(app.get_name(), fmt::format("--b, --i and --w: {}", error.message()));
  }
  return times;
}

void note(const std::string& file, const std::optional<std::string>& misfit, Console& console) {
  if (misfit) {
    console.err << fmt::format(
        "note: --costs {}: {}; missing values get their defaults\n", source_name(file), *misfit);
  }
}

}  // namespace

void add_cost_options(CLI::App& app, CostOptions& options) {
  const auto add = [&](const char* name, double& value, const char* meaning) {
    app.add_option(name, value, meaning)->check(number_from_zero())->type_name("X");
  };
  add("--f", options.durations.forward, "duration of a forward [1]");
  add("--b",
      options.durations.backward,
      "duration of a whole backward [2, or the sum of --i and --w]");
  add("--i", options.durations.backward_input, "duration of its input half [half of --b]");
  add("--w", options.durations.backward_weight, "duration of its weight half [half of --b]");
  add("--latency", options.latency, "duration of a transfer between two devices [0]");
  app.add_option("--costs", options.file, "costs.json instead, with bytes, links and stages")
      ->type_name("FILE");
}

Costs costs_of(const CLI::App& app, const CostOptions& options, Console& console) {
  if (options.file.empty()) {
    Costs costs;
    costs.stages.usual = stated(app, options, console);
    costs.links.usual.latency = options.latency;
    return costs;
  }
  for (const char* time : kTimes) {
    if (app.count(time) > 0) {
      wrong_usage(
          app.get_name(),
          fmt::format("expected --costs or {}, found both; the file gives the durations", time));
    }
  }
  return read_stage_costs(options.file, console);
}

Costs read_costs(const std::string& path, Console& console, const char* option) {
  const std::string text = read_source(path, option, console);
  try {
    ReadCosts read = parse_costs(text);
    for (const std::string& note : read.notes) {
      console.err << fmt::format("note: {} {}: {}\n", option, source_name(path), note);
    }
    return std::move(read.costs);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} {}: {}", option, source_name(path), error.message()));
  }
}

Costs read_stage_costs(const std::string& path, Console& console) {
  Costs costs = read_costs(path, console);
  if (!costs.operators.empty() && !knows_stage_times(costs)) {
    throw Error(
        Errc::UsageFile,
        fmt::format("--costs {} gives the times of operators but not of stages; stagecraft train "
                    "--dry-run --costs FILE --costs-out STAGES adds them up for the stages of a "
                    "cut, and a run with --costs-out measures stages",
                    source_name(path)));
  }
  return costs;
}

void note_misfit(const std::string& file,
                 const Costs& costs,
                 const Schedule& schedule,
                 const StageGraph& graph,
                 Console& console) {
  if (!file.empty() && knows_stage_times(costs)) {
    note(file, costs_misfit(costs, schedule, graph), console);
  }
}

void note_misfit(const std::string& file, const Costs& costs, int stages, Console& console) {
  if (!file.empty() && knows_stage_times(costs)) {
    note(file, stages_misfit(costs, stages), console);
  }
}

void require_finite(double makespan, std::size_t rows) {
  if (!std::isfinite(makespan * static_cast<double>(rows))) {
    throw Error(Errc::UsageArgument,
                "the durations add up to more than any number holds; give them in a larger unit");
  }
}

bool knows_memory(const Costs& costs) {
  const MemoryModel& memory = costs.stages.memory;
  return !memory.fixed.empty() || !memory.activations.empty() || !memory.transient.empty() ||
         !memory.replayed.empty();
}

Timeline timeline_of(const Schedule& schedule, const StageGraph& graph, const Costs& costs) {
  Timeline timeline = simulate(schedule, graph, costs);
  require_finite(timeline.makespan, schedule.rows().size());
  return timeline;
}

ScheduleFigures figures_of(const Schedule& schedule, const StageGraph& graph, const Costs& costs) {
  const ScheduleFigures figures = schedule_figures(schedule, graph, costs);
  require_finite(figures.makespan, schedule.rows().size());
  return figures;
}

}  // namespace stagecraft::tools
