#include "stagecraft/tools/trace/traced_run.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/measured/comparison.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft::tools {
namespace {

std::ifstream open_trace(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored)) {
    throw Error(Errc::UsageFile,
                fmt::format("TRACE expects a file that stagecraft train --trace wrote, found {} "
                            "'{}'",
                            file ? "the directory" : "none that can be read at",
                            path));
  }
  return file;
}

Schedule schedule_in(const TraceHeader& header, const std::string& path) {
  if (header.schedule.empty()) {
    throw Error(Errc::UsageFile,
                fmt::format("the trace '{}' does not contain its schedule, because an older "
                            "stagecraft wrote it; trace again",
                            path));
  }
  try {
    return Schedule::parse(header.schedule);
  } catch (const Error& error) {
    throw Error(
        Errc::UsageFile,
        fmt::format("the schedule in the trace '{}' is invalid: {}", path, error.message()));
  }
}

/// Returns the first point where the step belongs to another schedule; nothing if it was measured.
std::optional<std::string> measure(const TraceStep& traced,
                                   const Schedule& schedule,
                                   const Layout& layout,
                                   Measurements& measured) {
  if (traced.ranks.size() != static_cast<std::size_t>(layout.ranks())) {
    return fmt::format(
        "the schedule runs on {} ranks, the step on {}", layout.ranks(), traced.ranks.size());
  }
  const MeasuredStep step = measured_step(traced, layout);
  if (auto difference = first_difference(schedule, step)) {
    return difference;
  }
  measured.add(step);
  return std::nullopt;
}

/// `schedule`: absent: the one in the trace. `name`: of a given schedule.
TracedRun read_steps(const std::string& path,
                     std::optional<Schedule> schedule,
                     const std::string& name) {
  const bool is_given = schedule.has_value();
  std::ifstream file = open_trace(path);
  std::optional<Layout> layout;
  Measurements measured;
  const auto add = [&](const TraceHeader& header, const TraceStep& traced) {
    if (!schedule) {
      schedule = schedule_in(header, path);
    }
    if (!layout) {
      layout = Layout::of(*schedule);
    }
    if (const auto difference = measure(traced, *schedule, *layout, measured)) {
      throw Error(
          Errc::UsageFile,
          is_given
              ? fmt::format("the trace '{}' does not belong to the schedule {}: {} (step {}); name "
                            "the schedule of that run",
                            path,
                            name,
                            *difference,
                            traced.step)
              : fmt::format("the trace '{}' is damaged: its step {} does not follow the schedule "
                            "in it: {}; trace again",
                            path,
                            traced.step,
                            *difference));
    }
  };
  TraceHeader header = read_trace(file, path, add);
  if (measured.steps() == 0) {
    throw Error(
        Errc::UsageFile,
        fmt::format("the trace '{}' holds no step: the run ended before its first did", path));
  }
  return {std::move(*schedule), std::move(header), std::move(measured)};
}

}  // namespace

Costs TracedRun::costs() const {
  return header.planned_with ? header.planned_with->costs : measured.costs();
}

TracedRun read_run(const std::string& path, const Schedule& schedule, const std::string& name) {
  return read_steps(path, schedule, name);
}

TracedRun read_run(const std::string& path) {
  return read_steps(path, std::nullopt, "");
}

}  // namespace stagecraft::tools
