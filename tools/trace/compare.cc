#include "stagecraft/tools/trace/compare.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/comparison.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tools/trace/report.h"
#include "stagecraft/tools/trace/trace_file.h"

namespace stagecraft::tools {
namespace {

std::ifstream open(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  if (!file || file.peek() == std::ifstream::traits_type::eof()) {
    throw Error(
        Errc::UsageFile,
        fmt::format("expected {} that can be read and is not empty, found '{}'", what, path));
  }
  return file;
}

Schedule read_plan(const std::string& path) {
  std::ifstream file = open(path, "a schedule file");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return Schedule::parse(text);
}

void check_plan(const Schedule& plan, const std::string& path) {
  const std::vector<Violation> violations = validate(plan, plan.stage_graph(), {});
  if (!violations.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("the plan '{}' breaks {} rule{}, so it has no durations: {}; see "
                            "stagecraft schedule check",
                            path,
                            violations.size(),
                            violations.size() == 1 ? "" : "s",
                            violations.front().message));
  }
}

}  // namespace

void compare_files(const CompareOptions& options, std::ostream& out) {
  const Schedule plan = read_plan(options.plan);
  check_plan(plan, options.plan);
  std::ifstream file = open(options.trace, "a trace");
  Measurements measured;
  const TraceHeader run = read_trace(file, options.trace, [&](const TraceStep& traced) {
    const MeasuredStep step = measured_step(traced);
    if (const auto difference = first_difference(plan, step)) {
      throw Error(Errc::UsageFile,
                  fmt::format("the trace '{}' is not of the schedule '{}': {} (step {}); name the "
                              "schedule that was trained with",
                              options.trace,
                              options.plan,
                              *difference,
                              traced.step));
    }
    measured.add(step);
  });
  if (measured.steps() == 0) {
    throw Error(Errc::UsageFile,
                fmt::format("the trace '{}' holds no step: none had ended when the run did",
                            options.trace));
  }
  const Comparison comparison = compare(plan, plan.stage_graph(), measured.costs(), measured);
  if (options.json) {
    out << report_json(comparison, measured, run, options.limit) << '\n';
  } else {
    out << report_text(comparison, measured, run) << '\n' << cells_text(comparison, options.limit);
  }
}

}  // namespace stagecraft::tools
