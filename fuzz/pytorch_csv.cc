/// PyTorch's CSV: the compute cells of an accepted text can be printed and read back the same.
#include "stagecraft/scheduler/formats/pytorch_csv.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/exercise.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace sc = stagecraft;

namespace {

std::optional<sc::PytorchSchedule> read_csv(std::string_view text) {
  try {
    return sc::parse_pytorch_csv(text);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "a text is refused as such");
    return std::nullopt;
  }
}

/// Checks that the text that the writer makes of a valid schedule breaks no rule.
void check_written(const sc::Schedule& schedule) {
  const sc::StageGraph graph = schedule.stage_graph();
  if (schedule.columns() > 200 || schedule.stages() > 200 || !validate(schedule, graph).empty()) {
    return;
  }
  const auto again = read_csv(to_pytorch_comms_csv(schedule, graph));
  sc::fuzz::require(again && again->schedule == schedule.to_list(),
                    "written communication keeps the tasks");
  sc::fuzz::require(
      validate(again->schedule, graph, {.communication = again->communication}).empty(),
      "written communication breaks no rule");
}

/// Returns nothing for a group that is not one F with one B: the format reads it but does not write
/// it.
std::optional<std::string> printed(const sc::Schedule& schedule) {
  try {
    return to_pytorch_csv(schedule);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParameter,
                      "what has no word is refused as such");
    return std::nullopt;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = read_csv({reinterpret_cast<const char*>(data), size});
  if (!read) {
    return 0;
  }
  if (const auto text = printed(read->schedule)) {
    const auto again = read_csv(*text);
    sc::fuzz::require(again.has_value(), "printed CSV is read");
    sc::fuzz::require(again->schedule == read->schedule, "printed CSV reads back the same cells");
    check_written(read->schedule);
  }
  sc::fuzz::exercise(read->schedule, read->communication);
  return 0;
}
