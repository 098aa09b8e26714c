#include "stagecraft/tools/schedule/input/format.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/jaxpp.h"
#include "stagecraft/scheduler/formats/json/json.h"
#include "stagecraft/scheduler/formats/json/piper.h"
#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/formats/zero_bubble.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/scheduler/simulate/to_array.h"

namespace stagecraft::tools {
namespace {

constexpr std::array<std::pair<std::string_view, ScheduleFormat>, 8> kFormats{
    {{"text", ScheduleFormat::Text},
     {"list", ScheduleFormat::List},
     {"json", ScheduleFormat::Json},
     {"pytorch", ScheduleFormat::Pytorch},
     {"pytorch-comms", ScheduleFormat::PytorchComms},
     {"jaxpp", ScheduleFormat::Jaxpp},
     {"zero-bubble", ScheduleFormat::ZeroBubble},
     {"piper", ScheduleFormat::Piper}}};

constexpr double kMaxArrayCells = 2e7;

/// Checks what the writers below do not check themselves.
void require_expressible(const Schedule& schedule, const StageGraph& graph, ScheduleFormat format) {
  using formats::FormatWords;
  switch (format) {
    case ScheduleFormat::Text:
    case ScheduleFormat::List:
      return formats::require_expressible(schedule, graph, FormatWords{.name = "the text form"});
    case ScheduleFormat::Json:
      return formats::require_expressible(schedule, graph, FormatWords{.name = "JSON"});
    case ScheduleFormat::Pytorch:
    case ScheduleFormat::PytorchComms: {
      FormatWords words = kPytorchWords;
      words.graph = formats::GraphWords::Chain;  // readers of this format here assume a chain
      return formats::require_expressible(schedule, graph, words);
    }
    case ScheduleFormat::Jaxpp:
    case ScheduleFormat::ZeroBubble:
    case ScheduleFormat::Piper:
      return;
  }
}

Schedule as_array(const Schedule& schedule, const StageGraph& graph) {
  if (schedule.form() == Schedule::Form::Array) {
    return schedule;
  }
  try {
    if (fits_array(schedule, graph)) {
      return to_array(schedule, graph);
    }
  } catch (const Error& error) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("the list has no columns, as it cannot run to its end ({}); stagecraft "
                            "schedule check says why, the formats list and json take it as it is",
                            error.message()));
  }
  throw Error(Errc::ScheduleParameter,
              fmt::format("the array of this list would have more than {} cells; write it as list "
                          "or json",
                          kMaxArrayCells));
}

std::string_view first_row(std::string_view text) {
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
    line = line.substr(0, line.find('#'));
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '@') {
      return line.substr(begin);
    }
  }
  return {};
}

/// Returns the format of a text that begins with a bracket.
ScheduleFormat format_of_list(std::string_view text) {
  const std::size_t inner = text.find_first_not_of(" \t\r\n", 1);
  if (inner != std::string_view::npos && text[inner] == '{') {
    return ScheduleFormat::Piper;
  }
  if (text.find("ScheduledNode(") != std::string_view::npos) {
    return ScheduleFormat::ZeroBubble;
  }
  return text.find("Task(") != std::string_view::npos ? ScheduleFormat::Jaxpp
                                                      : ScheduleFormat::Json;
}

}  // namespace

ScheduleFormat format_of(std::string_view command, std::string_view option, std::string_view name) {
  const auto* const found =
      std::ranges::find(kFormats, name, [](const auto& entry) { return entry.first; });
  if (found != kFormats.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  names.reserve(kFormats.size());
  for (const auto& [known, format] : kFormats) {
    names.emplace_back(known);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("{} expects {}, found '{}'; {}see {} --help",
                          option,
                          kFormatNames,
                          name,
                          did_you_mean(name, names),
                          command));
}

ScheduleFormat detect_format(std::string_view text, std::string_view path) {
  const std::string_view row = first_row(text);
  if (row.starts_with('[')) {
    return format_of_list(text.substr(static_cast<std::size_t>(row.data() - text.data())));
  }
  if (row.starts_with('{')) {
    return ScheduleFormat::Json;
  }
  const bool csv = path.ends_with(".csv") || row.find(',') != std::string_view::npos;
  return csv ? ScheduleFormat::Pytorch : ScheduleFormat::Text;
}

bool columns_may_be_decoration(ScheduleFormat format) {
  return format == ScheduleFormat::Pytorch || format == ScheduleFormat::PytorchComms ||
         format == ScheduleFormat::Jaxpp;
}

bool fits_array(const Schedule& schedule, const StageGraph& graph) {
  const double columns = simulate(schedule, graph, Costs::unit()).makespan;
  return columns * static_cast<double>(schedule.rows().size()) <= kMaxArrayCells;
}

std::string write_schedule(const Schedule& schedule,
                           const StageGraph& graph,
                           ScheduleFormat format) {
  require_expressible(schedule, graph, format);
  switch (format) {
    case ScheduleFormat::Text:
      return to_string(as_array(schedule, graph));
    case ScheduleFormat::List:
      return to_string(schedule.to_list());
    case ScheduleFormat::Json:
      return to_json(schedule);
    case ScheduleFormat::Pytorch:
      return to_pytorch_csv(schedule);
    case ScheduleFormat::PytorchComms:
      return to_pytorch_comms_csv(schedule, graph);
    case ScheduleFormat::Jaxpp:
      return to_jaxpp(schedule, graph);
    case ScheduleFormat::ZeroBubble:
      return to_zero_bubble(schedule, graph);
    case ScheduleFormat::Piper:
      return to_piper(schedule, graph);
  }
  throw Error(Errc::Internal, "a format without a writer");
}

}  // namespace stagecraft::tools
