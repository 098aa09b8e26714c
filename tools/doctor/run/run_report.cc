#include "stagecraft/tools/doctor/run/run_report.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/printable.h"
#include "stagecraft/tools/common/command_json.h"

namespace stagecraft::tools {
namespace {

using Report = nlohmann::ordered_json;

const char* name_of_state(RunState state) {
  switch (state) {
    case RunState::Finished:
      return "finished";
    case RunState::Running:
      return "running";
    case RunState::ToldToEnd:
      return "told_to_end";
    case RunState::Incomplete:
      return "incomplete";
    case RunState::Failed:
      return "failed";
    case RunState::Killed:
      break;
  }
  return "killed";
}

/// Returns the first and the last step that a new start makes again; nothing if it makes none.
std::optional<std::pair<std::int64_t, std::int64_t>> steps_made_again(const RunDiagnosis& run) {
  const std::int64_t kept = run.checkpoint ? run.checkpoint->step : 0;
  return run.made && *run.made > kept ? std::optional(std::pair(kept + 1, *run.made))
                                      : std::nullopt;
}

std::string steps_text(const RunDiagnosis& run) {
  if (!run.steps) {
    return run.state == RunState::Running ? "it has not begun to train"
                                          : "it ended before it began to train";
  }
  return fmt::format("{} of {} are made", run.made.value_or(0), *run.steps);
}

std::string checkpoint_text(const RunDiagnosis& run) {
  const auto again = steps_made_again(run);
  const std::string lost =
      !again ? "no step is lost"
      : again->first == again->second
          ? fmt::format("step {} is to be made again", again->first)
          : fmt::format("steps {} to {} are to be made again", again->first, again->second);
  return run.checkpoint ? fmt::format("{}, whole; {}", run.checkpoint->path, lost)
         : again        ? fmt::format("none; {}; a smaller --save-every N loses fewer", lost)
                        : "none";
}

std::string report_line(const char* name, const std::string& text) {
  return fmt::format("{:<11}{}\n", name, printable(text));
}

template <class T>
Report or_null(const std::optional<T>& value) {
  return value ? Report(*value) : Report(nullptr);
}

}  // namespace

std::string run_report_text(const RunDiagnosis& run) {
  std::string text = printable(fmt::format("{} {}", run.folder, run.how)) + '\n';
  text +=
      report_line("started",
                  fmt::format("{}{}",
                              run.started,
                              run.starts == 1 ? std::string()
                                              : fmt::format(", start {} of this run", run.starts)));
  if (!run.ended.empty()) {
    text += report_line("ended", run.ended);
  }
  text += report_line("steps", steps_text(run));
  for (const RunRestart& restart : run.restarts) {
    text += report_line("healed",
                        fmt::format("at step {}: {}",
                                    restart.step,
                                    restart.failures.empty() ? "" : restart.failures.front()));
  }
  text += report_line("checkpoint", checkpoint_text(run));
  if (!run.log.empty()) {
    text += report_line("log", run.log + (run.last_lines.empty() ? ", which is empty" : ""));
    for (const std::string& line : run.last_lines) {
      text += report_line("", line);
    }
  }
  for (const std::string& note : run.notes) {
    text += report_line("note", note);
  }
  text += report_line("build", run.build);
  return text + report_line(run.state == RunState::Finished || run.state == RunState::Running
                                ? "command"
                                : "go on",
                            run.go_on);
}

std::string run_report_json(const RunDiagnosis& run) {
  Report restarts = Report::array();
  for (const RunRestart& restart : run.restarts) {
    restarts.push_back({{"step", restart.step}, {"failures", restart.failures}});
  }
  Report error(nullptr);
  if (run.error) {
    error = {{"message", run.error->message},
             {"code", run.error->code},
             {"rank", or_null(run.error->rank)},
             {"step", or_null(run.error->step)}};
  }
  const auto again = steps_made_again(run);
  return command_json(
      "doctor",
      {{"good", !is_trouble(run.state)},
       {"run", run.folder},
       {"state", name_of_state(run.state)},
       {"how", run.how},
       {"starts", run.starts},
       {"started", run.started},
       {"ended", run.ended},
       {"step", or_null(run.made)},
       {"steps", or_null(run.steps)},
       {"error", error},
       {"restarts", restarts},
       {"checkpoint",
        run.checkpoint ? Report{{"step", run.checkpoint->step}, {"file", run.checkpoint->path}}
                       : Report(nullptr)},
       {"repeated_steps", again ? again->second - again->first + 1 : 0},
       {"log", run.log},
       {"last_lines", run.last_lines},
       {"notes", run.notes},
       {"build", run.build},
       {"go_on", run.go_on}});
}

}  // namespace stagecraft::tools
