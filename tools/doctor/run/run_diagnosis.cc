#include "stagecraft/tools/doctor/run/run_diagnosis.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/base/shell_word.h"
#include "stagecraft/base/split.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/common/interrupt.h"
#include "stagecraft/tools/doctor/run/run_paths.h"
#include "stagecraft/tools/run_record/run_environment.h"
#include "stagecraft/tools/run_record/run_record.h"

namespace stagecraft::tools {
namespace {

using Event = nlohmann::ordered_json;

constexpr std::size_t kLastLines = 10;
constexpr std::int64_t kTailBytes = 64 * 1024;
constexpr int kOfSignals = 128;
constexpr int kLastStatus = 255;

/// Returns a field; `otherwise` if it is missing or of another type: a record may be of another
/// version, or damaged.
template <class T>
T field(const Event& event, const char* name, T otherwise) {
  try {
    return event.value(name, otherwise);
  } catch (const Event::exception&) {
    return otherwise;
  }
}

/// Returns a number of a step, a rank or a process, none of which is below 0.
std::optional<std::int64_t> number_field(const Event& event, const char* name) {
  const auto found = event.find(name);
  const bool is_one = found != event.end() && found->is_number_unsigned() &&
                      std::in_range<std::int64_t>(found->get<std::uint64_t>());
  return is_one ? std::optional(found->get<std::int64_t>()) : std::nullopt;
}

/// Holds the events of the last start, by name; the last of each.
struct LastStart {
  Event start, began, complete, interrupted, stopped, not_verified, done, failed_at, end;
  std::vector<Event> restarts, not_saved;
  int starts = 0;

  explicit LastStart(const RunRecord& record) {
    const int before = static_cast<int>(std::ranges::count_if(
        record.events, [](const Event& event) { return event.at("event") == "start"; }));
    for (const Event& event : record.events) {
      add(event);
    }
    starts = before;
  }

 private:
  void add(const Event& event) {
    const std::string name = event.at("event");
    if (name == "start") {
      *this = LastStart();
      start = event;
      return;
    }
    for (const auto& [known, place] : {std::pair{"began", &began},
                                       std::pair{"complete", &complete},
                                       std::pair{"interrupted", &interrupted},
                                       std::pair{"stopped", &stopped},
                                       std::pair{"not_verified", &not_verified},
                                       std::pair{"done", &done},
                                       std::pair{"failed_at", &failed_at},
                                       std::pair{"end", &end}}) {
      if (name == known) {
        *place = event;
      }
    }
    if (name == "restart") {
      restarts.push_back(event);
    } else if (name == "not_saved") {
      not_saved.push_back(event);
    }
  }

  LastStart() = default;
};

/// Returns the last lines of a file, also the one that it ends in, which may be empty; none if it
/// cannot be read. The name is from a record, so the file may be anything: a pipe would never end.
std::vector<std::string> end_of(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) {
    return {};
  }
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::int64_t size = file ? static_cast<std::int64_t>(file.tellg()) : 0;
  const std::int64_t begin = std::max<std::int64_t>(0, size - kTailBytes);
  std::string text(static_cast<std::size_t>(kTailBytes), '\0');
  file.seekg(begin);
  file.read(text.data(), kTailBytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  const std::vector<std::string_view> lines = split(text, '\n');
  const std::ptrdiff_t whole = begin > 0 && lines.size() > 1 ? 1 : 0;  // the first has no begin
  return {lines.begin() + whole, lines.end()};
}

/// Returns the last lines of a log.
std::vector<std::string> tail_of(const std::string& path) {
  std::vector<std::string> lines = end_of(path);
  if (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  const std::size_t more = lines.size() - std::min(lines.size(), kLastLines);
  return {lines.begin() + static_cast<std::ptrdiff_t>(more), lines.end()};
}

/// Returns the step of the last whole row of metrics.csv.
std::optional<std::int64_t> last_step_in(const std::string& folder) {
  std::vector<std::string> rows = end_of(folder + "/metrics.csv");
  if (!rows.empty()) {
    rows.pop_back();  // what follows the last whole row
  }
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    std::int64_t step = 0;
    const char* const end = row->data() + row->size();
    const auto [rest, error] = std::from_chars(row->data(), end, step);
    if (error == std::errc() && rest != end && *rest == ',') {
      return step;
    }
  }
  return std::nullopt;
}

/// Quotes a word of a shell if it needs that.
std::string quoted_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  return is_plain ? word : shell_word(word);
}

/// Returns the words of the command of a start. If the folder was moved, they name it where it is.
std::vector<std::string> command_words(const Event& start, const RunPaths& paths) {
  std::vector<std::string> words;
  for (const Event& word : field(start, "command", Event::array())) {
    words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  }
  if (paths.before().empty()) {
    return words;
  }
  const std::string option = "--run-dir";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(option + "=")) {
      words[i] = option + "=" + paths.now(words[i].substr(option.size() + 1));
    } else if (words[i] == option && i + 1 < words.size()) {
      words[i + 1] = paths.now(words[i + 1]);
    }
  }
  return words;
}

/// Returns the command of a start, as a line for a shell.
std::string command_line(const Event& start, const RunPaths& paths) {
  std::string line = "cd " + quoted_word(field<std::string>(start, "directory", ".")) + " &&";
  const Event environment = field(start, "environment", Event::object());
  for (const auto& [name, value] : environment.items()) {
    if (changes_run(name) && value.is_string()) {  // a record of a stranger may hold others
      line += fmt::format(" {}={}", name, quoted_word(value.get<std::string>()));
    }
  }
  line += " stagecraft train";
  for (const std::string& word : command_words(start, paths)) {
    line += " " + quoted_word(word);
  }
  return line;
}

RunError run_error_of(const LastStart& last) {
  const Event error = field(last.end, "error", Event::object());
  std::optional<std::int64_t> step;
  if (last.failed_at.is_object()) {
    step = number_field(last.failed_at, "step");
  }
  return {.message = field<std::string>(error, "message", "it does not say why"),
          .code = field<std::string>(error, "code", ""),
          .rank = number_field(error, "rank"),
          .step = step};
}

std::string place_of_error(const RunError& error) {
  std::string where;
  if (error.step) {
    where += fmt::format(" at step {}", *error.step);
  }
  if (error.rank) {
    where += fmt::format("{} rank {}", error.step ? "," : " at", *error.rank);
  }
  return where;
}

std::string process_text(const Event& start) {
  return fmt::format("process {} on {}",
                     number_field(start, "process").value_or(0),
                     field<std::string>(start, "host", "an unknown host"));
}

/// Returns what is known of a process that ended without a word.
std::string killed_text(const Event& start, const RunPaths& paths) {
  const std::string who = process_text(start);
  if (!paths.before().empty()) {  // it may go on where this is a copy of
    return fmt::format(
        "{} has said no end in {}, where this folder was: ask there", who, paths.before());
  }
  if (field<std::string>(start, "host", "") != host_name()) {
    return fmt::format("{} has said no end: it was killed, or its host ended; ask there", who);
  }
  return field<std::string>(start, "boot", "") == boot_id()
             ? fmt::format("{} was killed without a word: `dmesg` says whether memory was used up",
                           who)
             : fmt::format("{} ended with its host, which has started anew since", who);
}

/// Sets the state, its line, and the error.
void judge_end(const LastStart& last, const RunPaths& paths, RunDiagnosis& run) {
  const auto say = [&run](RunState state, std::string how) {
    run.state = state;
    run.how = std::move(how);
  };
  if (!last.end.is_object()) {
    if (is_run_going_on(run.folder)) {
      say(RunState::Running, fmt::format("is running: {}", process_text(last.start)));
    } else {
      say(RunState::Killed, killed_text(last.start, paths));
    }
    return;
  }
  run.ended = field<std::string>(last.end, "time", "");
  const std::int64_t status = number_field(last.end, "exit_status").value_or(1);
  if (last.end.contains("error")) {
    run.error = run_error_of(last);
    say(RunState::Failed,
        fmt::format("failed{}: {}", place_of_error(*run.error), run.error->message));
  } else if (status > kOfSignals && status <= kLastStatus) {
    say(RunState::ToldToEnd,
        fmt::format("was told to end by {}, and has ended in order",
                    signal_name(static_cast<int>(status) - kOfSignals)));
  } else if (last.not_verified.is_object()) {
    say(RunState::Incomplete,
        fmt::format("has made its steps, but --verify found a difference: {}",
                    field<std::string>(last.not_verified, "difference", "")));
  } else if (status != static_cast<int>(ExitCode::Good)) {
    say(RunState::Incomplete, "has ended, but nobody could read its output to the end");
  } else if (last.stopped.is_object()) {
    say(RunState::ToldToEnd, "was told to end by a watcher, and has ended in order");
  } else {
    say(RunState::Finished, "has finished: all its steps are made");
  }
}

/// Sets how far the run came, and where it would go on.
void judge_steps(const LastStart& last, const RunPaths& paths, RunDiagnosis& run) {
  const Event places = field(last.start, "places", Event::object());
  if (const std::string metrics = paths.now(field<std::string>(places, "metrics", ""));
      !metrics.empty()) {
    run.made = last_step_in(metrics);
  }
  for (const Event* event : {&last.began, &last.done, &last.complete}) {
    if (event->is_object()) {
      run.made = std::max(run.made, number_field(*event, "step"));
      run.steps = event->contains("steps") ? number_field(*event, "steps") : run.steps;
    }
  }
  const std::string checkpoints = paths.now(field<std::string>(places, "checkpoints", ""));
  try {
    const CheckpointSearch search = find_checkpoint(checkpoints);
    run.checkpoint = search.newest;
    for (const Error& broken : search.broken) {
      run.notes.push_back(fmt::format("a checkpoint is broken: {}", broken.message()));
    }
  } catch (const Error& error) {
    run.notes.push_back(error.message());
  }
}

/// Sets the restarts, and the log of the worker that was lost last.
void judge_workers(const LastStart& last, const RunPaths& paths, RunDiagnosis& run) {
  for (const Event& restart : last.restarts) {
    run.restarts.push_back({.step = number_field(restart, "step").value_or(0),
                            .failures = field(restart, "failures", std::vector<std::string>())});
    for (const Event& worker : field(restart, "workers", Event::array())) {
      run.log = field<std::string>(worker, "log", run.log);
    }
  }
  if (last.failed_at.is_object()) {
    run.log = field<std::string>(last.failed_at, "log", run.log);
  }
  if (!run.log.empty()) {
    run.log = paths.now(run.log);
    run.last_lines = tail_of(run.log);
  }
}

}  // namespace

bool is_trouble(RunState state) {
  return state == RunState::Incomplete || state == RunState::Failed || state == RunState::Killed;
}

RunDiagnosis diagnose_run(const std::string& folder) {
  const RunRecord record = read_run_record(folder);
  const LastStart last(record);
  RunDiagnosis run{.folder = folder,
                   .started = field<std::string>(last.start, "time", ""),
                   .build = field<std::string>(last.start, "build", ""),
                   .starts = last.starts};
  if (record.damaged > 0) {
    run.notes.push_back(fmt::format("{} of the record is not whole, and was passed over",
                                    count_text(record.damaged, "line")));
  }
  if (!last.start.is_object()) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' has a record, but no whole line of it says that a run started "
                            "there: start the run, or look at the record yourself",
                            folder));
  }
  const RunPaths paths(
      folder,
      field<std::string>(field(last.start, "places", Event::object()), "folder", ""),
      field<std::string>(last.start, "directory", "."));
  if (!paths.before().empty()) {
    run.notes.push_back(fmt::format("when the run started, this folder was {}", paths.before()));
  }
  judge_end(last, paths, run);
  judge_steps(last, paths, run);
  judge_workers(last, paths, run);
  for (const Event& failed : last.not_saved) {
    run.notes.push_back(fmt::format("the checkpoint of step {} was not saved: {}",
                                    number_field(failed, "step").value_or(0),
                                    field<std::string>(failed, "why", "")));
  }
  run.go_on = command_line(last.start, paths);
  return run;
}

}  // namespace stagecraft::tools
