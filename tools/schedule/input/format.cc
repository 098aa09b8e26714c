#include "stagecraft/tools/schedule/input/format.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {

std::string format_names() {
  std::string names;
  for (const ScheduleFormat& format : schedule_formats()) {
    const bool last = &format == &schedule_formats().back();
    names += fmt::format("{}{}", names.empty() ? "" : last ? " or " : ", ", format.name);
  }
  return names;
}

std::string format_lines() {
  std::string lines;
  for (const ScheduleFormat& format : schedule_formats()) {
    lines += fmt::format("  {:<14}  {}\n", format.name, format.summary);
  }
  return lines;
}

const ScheduleFormat& format_of(const std::string& command,
                                std::string_view option,
                                std::string_view name) {
  try {
    return find_format(name);
  } catch (const Error& error) {
    wrong_usage(command, fmt::format("{} expects a format: {}", option, error.message()));
  }
}

std::string_view communication_format() {
  return std::ranges::find(schedule_formats(), true, &ScheduleFormat::communicates)->name;
}

}  // namespace stagecraft::tools
