/// The file formats of the scheduling commands by name, and writing them without loss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft::tools {

enum class ScheduleFormat : std::uint8_t {
  Text,         ///< the array as text
  List,         ///< the list as text
  Json,         ///< either form, as it is
  Pytorch,      ///< PyTorch's CSV without communication, either form as it is
  PytorchComms  ///< PyTorch's CSV with communication, a list
};

/// For help texts and messages.
inline constexpr std::string_view kFormatNames = "text, list, json, pytorch or pytorch-comms";

/// Errors: UsageArgument naming `option`, with a suggestion and where `command` says more.
[[nodiscard]] ScheduleFormat format_of(std::string_view command,
                                       std::string_view option,
                                       std::string_view name);

/// Returns the format a file seems to have: JSON begins with a brace; CSV is called .csv or has a
/// comma in its first row; all else is text.
[[nodiscard]] ScheduleFormat detect_format(std::string_view text, std::string_view path);

/// Whether the array of a list has a size that one would write: rows times columns may be the
/// square of the cells. Requires: its rows do not wait for each other for ever.
[[nodiscard]] bool fits_array(const Schedule& schedule, const StageGraph& graph);

/// Returns the schedule as a file of that format. `graph`: its stages.
/// Errors: ScheduleParameter, naming the first cell that the format cannot express;
/// ScheduleParameter for an array that is too large (fits_array); ScheduleInvalid for an array or
/// communication of rows that wait for each other for ever.
[[nodiscard]] std::string write_schedule(const Schedule& schedule,
                                         const StageGraph& graph,
                                         ScheduleFormat format);

}  // namespace stagecraft::tools
