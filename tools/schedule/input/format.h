/// The file formats of the schedule commands by name, and writing them without loss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft::tools {

enum class ScheduleFormat : std::uint8_t {
  Text,          ///< the array as text
  List,          ///< the list as text
  Json,          ///< either form, as it is
  Pytorch,       ///< PyTorch's CSV without communication, either form as it is
  PytorchComms,  ///< PyTorch's CSV with communication, a list
  Jaxpp,         ///< JaxPP's array, either form as it is
  ZeroBubble,    ///< the zero-bubble scheduler's list
  Piper          ///< Piper's directives, a list
};

/// For help texts and messages.
inline constexpr std::string_view kFormatNames =
    "text, list, json, pytorch, pytorch-comms, jaxpp, zero-bubble or piper";

/// Errors: UsageArgument naming `option`, with a suggestion and the command that says more.
[[nodiscard]] ScheduleFormat format_of(std::string_view command,
                                       std::string_view option,
                                       std::string_view name);

/// Returns the format that a file seems to have. JSON begins with a brace, Piper's with a list of
/// objects. Lists of JaxPP and of the zero-bubble scheduler hold calls of their names. CSV is
/// called .csv or has a comma in its first row. All else is text.
[[nodiscard]] ScheduleFormat detect_format(std::string_view text, std::string_view path);

/// Returns whether the columns of a format may mean nothing, so that only the order in a row
/// counts.
[[nodiscard]] bool columns_may_be_decoration(ScheduleFormat format);

/// Returns whether the array of a list is small enough to write: rows times columns may be the
/// square of the cells. Requires: its rows do not wait for each other forever.
[[nodiscard]] bool fits_array(const Schedule& schedule, const StageGraph& graph);

/// Returns the schedule as a file of that format. `graph`: its stages.
/// Errors: ScheduleParameter, naming the first cell that the format cannot express, and for an
///         array that is too large (fits_array); ScheduleInvalid for an array or communication of
///         rows that wait for each other forever.
[[nodiscard]] std::string write_schedule(const Schedule& schedule,
                                         const StageGraph& graph,
                                         ScheduleFormat format);

}  // namespace stagecraft::tools
