#include "stagecraft/scheduler/formats/registry.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/jaxpp.h"
#include "stagecraft/scheduler/formats/json/json.h"
#include "stagecraft/scheduler/formats/json/piper.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/formats/text.h"
#include "stagecraft/scheduler/formats/zero_bubble.h"
#include "stagecraft/scheduler/simulate/to_array.h"

namespace stagecraft {
namespace {

/// Reads a format whose files hold nothing but the schedule.
template <Schedule (*Parse)(std::string_view)>
ReadSchedule only_schedule(std::string_view text) {
  return {Parse(text)};
}

/// Writes a format whose text follows from the schedule and its headers alone.
template <std::string (*Write)(const Schedule&)>
std::string without_graph(const Schedule& schedule, const StageGraph& /*graph*/) {
  return Write(schedule);
}

ReadSchedule parse_list(std::string_view text) {
  return {Schedule::parse(text).to_list()};
}

/// The formats go from the general to the special, because the last one that recognizes a file
/// reads it.
const std::vector<ScheduleFormat>& table() {
  static const std::vector<ScheduleFormat> kTable{
      {.name = "text",
       .summary = "one line for each row, `.` for a bubble, comments and headers",
       .words = kTextWords,
       .read = only_schedule<&Schedule::parse>,
       .write = without_graph<&to_string>,
       .form = Schedule::Form::Array,
       .comments = true},
      {.name = "list",
       .summary = "the same text without bubbles",
       .words = kListWords,
       .read = parse_list,
       .write = without_graph<&to_string>,
       .form = Schedule::Form::List,
       .comments = true},
      {.name = "json",
       .summary = "the same content for programs",
       .words = kJsonWords,
       .read = only_schedule<&parse_json>,
       .write = without_graph<&to_json>,
       .recognizes = looks_like_json},
      {.name = "pytorch",
       .summary = "the CSV of torch.distributed.pipelining",
       .words = kPytorchWords,
       .read = parse_pytorch_csv,
       .write = without_graph<&to_pytorch_csv>,
       .recognizes = looks_like_csv,
       .ending = ".csv",
       .columns_are_times = false},
      {.name = "pytorch-comms",
       .summary = "the same CSV with sends, receives and sharding",
       .words = kPytorchCommsWords,
       .read = parse_pytorch_csv,
       .write = to_pytorch_comms_csv,
       .columns_are_times = false,
       .communicates = true},
      {.name = "jaxpp",
       .summary = "what `print(schedule.tasks(8))` of JaxPP shows",
       .words = kJaxppWords,
       .read = only_schedule<&parse_jaxpp>,
       .write = without_graph<&to_jaxpp>,
       .recognizes = looks_like_jaxpp,
       .columns_are_times = false},
      {.name = "zero-bubble",
       .summary = "what `print(create_schedule(config))` of zero-bubble shows",
       .words = kZeroBubbleWords,
       .read = only_schedule<&parse_zero_bubble>,
       .write = without_graph<&to_zero_bubble>,
       .recognizes = looks_like_zero_bubble},
      {.name = "piper",
       .summary = "the split, place and order directives of Piper",
       .words = kPiperWords,
       .read = parse_piper,
       .write = without_graph<&to_piper>,
       .recognizes = looks_like_piper},
  };
  return kTable;
}

/// Returns the text from its first row on, after blank lines, comments and headers.
std::string_view from_first_row(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '@' && line[begin] != '#') {
      return text.substr(begin);
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return text;
}

Schedule in_columns(const Schedule& schedule, const StageGraph& graph) {
  if (schedule.form() == Schedule::Form::Array) {
    return schedule;
  }
  try {
    return to_array(schedule, graph);
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleInvalid) {
      throw;
    }
    throw Error(
        Errc::ScheduleInvalid,
        fmt::format("the list has no columns, because its rows do not run to their end ({}); "
                    "stagecraft schedule check shows why, and the formats list and json take the "
                    "list as it is",
                    error.message()));
  }
}

}  // namespace

std::span<const ScheduleFormat> schedule_formats() {
  return table();
}

const ScheduleFormat& find_format(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &ScheduleFormat::name);
  if (found != table().end()) {
    return *found;
  }
  std::vector<std::string> names;
  for (const ScheduleFormat& format : table()) {
    names.emplace_back(format.name);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("no format is called '{}'; {}there are {}",
                          name.substr(0, 40),
                          did_you_mean(name, names),
                          fmt::join(names, ", ")));
}

const ScheduleFormat& detect_format(std::string_view text, std::string_view path) {
  const std::string_view rows = from_first_row(text);
  for (auto format = table().rbegin(); format != table().rend(); ++format) {
    if (format->recognizes != nullptr && format->recognizes(rows)) {
      return *format;
    }
  }
  const auto named = std::ranges::find_if(table(), [&](const ScheduleFormat& format) {
    return !format.ending.empty() && path.ends_with(format.ending);
  });
  return named == table().end() ? table().front() : *named;
}

std::string write_schedule(const Schedule& schedule,
                           const StageGraph& graph,
                           const ScheduleFormat& format) {
  if (format.write == nullptr) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("files of the format {} are only read; write text or JSON", format.name));
  }
  formats::require_expressible(schedule, graph, format.words);
  if (format.form == Schedule::Form::Array) {
    return format.write(in_columns(schedule, graph), graph);
  }
  return format.write(format.form == Schedule::Form::List ? schedule.to_list() : schedule, graph);
}

}  // namespace stagecraft
