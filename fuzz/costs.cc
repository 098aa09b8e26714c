/// costs.json: an accepted text can be printed, reads back the same, and can be used in a
/// simulation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace sc = stagecraft;

namespace {

std::optional<sc::Costs> read_costs(std::string_view text) {
  try {
    return sc::parse_costs(text).costs;
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "costs are refused as such");
    return std::nullopt;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = read_costs({reinterpret_cast<const char*>(data), size});
  if (!read) {
    return 0;
  }
  const auto again = read_costs(to_json(*read));
  sc::fuzz::require(again.has_value(), "printed costs are read");
  sc::fuzz::require(*again == *read, "printed costs read back the same");
  const sc::Schedule schedule = sc::one_f_one_b(3, 2);
  const sc::Timeline timeline = simulate(schedule, schedule.stage_graph(), *read);
  sc::fuzz::require(timeline.makespan >= 0, "time does not run backwards");
  return 0;
}
