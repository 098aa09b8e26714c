/// The file formats of the registry: each refuses a text as such, or reads a schedule that it
/// prints and reads back the same.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/exercise.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace sc = stagecraft;

namespace {

std::optional<sc::ReadSchedule> read_as(const sc::ScheduleFormat& format, std::string_view text) {
  try {
    return format.read(text);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "a text is refused as such");
    return std::nullopt;
  }
}

/// Returns nothing for a schedule that the format has no words for, or whose list has no columns.
std::optional<std::string> printed(const sc::Schedule& schedule, const sc::ScheduleFormat& format) {
  try {
    return write_schedule(schedule, schedule.stage_graph(), format);
  } catch (const sc::Error& error) {
    sc::fuzz::require(
        error.code() == sc::Errc::ScheduleParameter || error.code() == sc::Errc::ScheduleInvalid,
        "a schedule that cannot be printed is refused as such");
    return std::nullopt;
  }
}

/// Checks that the communication that the writer lays out for a valid schedule breaks no rule.
void check_communication(const sc::Schedule& schedule, const sc::ReadSchedule& again) {
  const sc::StageGraph graph = schedule.stage_graph();
  if (schedule.columns() > 200 || schedule.stages() > 200 || !validate(schedule, graph).empty()) {
    return;
  }
  sc::fuzz::require(validate(again.schedule, graph, {.communication = again.communication}).empty(),
                    "written communication breaks no rule");
}

void both_ways(std::string_view text, const sc::ScheduleFormat& format) {
  const auto read = read_as(format, text);
  if (!read) {
    return;
  }
  const sc::Schedule& schedule = read->schedule;
  if (const auto file = printed(schedule, format)) {
    const auto again = read_as(format, *file);
    sc::fuzz::require(again.has_value(), "a printed file is read");
    sc::fuzz::require(again->schedule.to_list() == schedule.to_list(),
                      "a printed file keeps the order of rows");
    sc::fuzz::require(again->left_out.empty(), "a printed file holds only a schedule");
    if (format.words.bubbles && format.form.value_or(schedule.form()) == schedule.form()) {
      sc::fuzz::require(again->schedule == schedule, "a printed file keeps the cells");
    }
    if (format.words.graph == sc::formats::GraphWords::Any) {
      sc::fuzz::require(sc::fuzz::same_headers(again->schedule, schedule),
                        "a printed file keeps the headers");
    }
    if (format.communicates) {
      check_communication(schedule, *again);
    }
  }
  sc::fuzz::exercise(schedule, read->communication);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const sc::ScheduleFormat& format : sc::schedule_formats()) {
    both_ways({reinterpret_cast<const char*>(data), size}, format);
  }
  return 0;
}
