#include "stagecraft/tools/schedule/format.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/json.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/simulate.h"

namespace stagecraft::tools {
namespace {

constexpr std::array<std::pair<std::string_view, ScheduleFormat>, 5> kFormats{
    {{"text", ScheduleFormat::Text},
     {"list", ScheduleFormat::List},
     {"json", ScheduleFormat::Json},
     {"pytorch", ScheduleFormat::Pytorch},
     {"pytorch-comms", ScheduleFormat::PytorchComms}}};

constexpr double kMaxArrayCells = 2e7;

/// Calls `fault` for each cell and throws for the first that it names something wrong with.
template <class Fault>
void require_each_cell(const Schedule& schedule, std::string_view format, Fault&& fault) {
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    const Schedule::Row& row = schedule.rows()[r];
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string wrong = fault(row[c]);
      if (!wrong.empty()) {
        throw Error(Errc::ScheduleParameter,
                    fmt::format("{} cannot express {} (row {}, column {}): {}",
                                format,
                                to_string(row[c]),
                                r,
                                c,
                                wrong));
      }
    }
  }
}

/// Only JSON brings tasks without a kind or with a number below 0: no form has words for them.
std::string fault_of_task(const Cell& cell) {
  if (cell.is_group() && cell.tasks().size() < 2) {
    return "an overlap group has two tasks or more";
  }
  for (const Task& task : cell.tasks()) {
    const bool known = letter(task.kind) != '?' && task.kind != CellKind::Idle;
    if (!known || task.stage.value < 0 || task.microbatch.value < 0) {
      return "it is no task of a schedule; mend it first, stagecraft schedule check says how";
    }
  }
  return "";
}

bool equal(std::span<const StageId> found, const std::vector<StageId>& expected) {
  return std::ranges::equal(found, expected);
}

bool is_chain_at(const StageGraph& graph, StageId s) {
  using Stages = std::vector<StageId>;
  const Stages before = s.value == 0 ? Stages{} : Stages{StageId(s.value - 1)};
  const Stages after = s.value + 1 == graph.size() ? Stages{} : Stages{StageId(s.value + 1)};
  return equal(graph.preds(s), before) && equal(graph.succs(s), after);
}

/// The CSV names no graph: whoever reads it takes the stages for one chain that trains.
std::string fault_in_chain(const StageGraph& graph, const Cell& cell) {
  for (const Task& task : cell.tasks()) {
    if (task.stage.value < graph.size() &&
        (!is_chain_at(graph, task.stage) || graph.replicas() > 1)) {
      return fmt::format(
          "its stage {} is no part of one chain of stages, and the format has no word for other "
          "graphs; write text or JSON",
          task.stage.value);
    }
    if (task.stage.value < graph.size() && !graph.needs_weight_grad(task.stage)) {
      return fmt::format(
          "its stage {} is frozen, and the format has no word for that; write text or JSON",
          task.stage.value);
    }
  }
  return "";
}

std::string fault_in_csv(const Cell& cell) {
  for (const Task& task : cell.tasks()) {
    if (task.kind == CellKind::Update) {
      return "the format has no word for an update; leave updates out or write text or JSON";
    }
  }
  const auto tasks = cell.tasks();
  if (cell.is_group() && (tasks.size() != 2 || tasks[0].kind != CellKind::Forward ||
                          tasks[1].kind != CellKind::Backward)) {
    return "the format overlaps one forward with one backward only; write text or JSON";
  }
  return "";
}

void require_expressible(const Schedule& schedule, const StageGraph& graph, ScheduleFormat format) {
  const bool csv = format == ScheduleFormat::Pytorch || format == ScheduleFormat::PytorchComms;
  const std::string_view name = csv                              ? "PyTorch's CSV"
                                : format == ScheduleFormat::Json ? "JSON"
                                                                 : "the text form";
  require_each_cell(schedule, name, [&](const Cell& cell) {
    std::string fault = fault_of_task(cell);
    if (fault.empty() && csv) {
      fault = fault_in_csv(cell);
    }
    return fault.empty() && csv ? fault_in_chain(graph, cell) : fault;
  });
}

Schedule as_array(const Schedule& schedule, const StageGraph& graph) {
  if (schedule.form() == Schedule::Form::Array) {
    return schedule;
  }
  try {
    if (fits_array(schedule, graph)) {
      return schedule.to_array(graph);
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
  if (row.starts_with('{') || row.starts_with('[')) {
    return ScheduleFormat::Json;
  }
  const bool csv = path.ends_with(".csv") || row.find(',') != std::string_view::npos;
  return csv ? ScheduleFormat::Pytorch : ScheduleFormat::Text;
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
  }
  throw Error(Errc::Internal, "a format without a writer");
}

}  // namespace stagecraft::tools
