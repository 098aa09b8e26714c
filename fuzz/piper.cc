/// Piper's directives: an accepted text can be printed and reads back the same.
#include "stagecraft/scheduler/formats/json/piper.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/exercise.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<sc::PiperSchedule> read;
  try {
    read = sc::parse_piper({reinterpret_cast<const char*>(data), size});
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "a text is refused as such");
    return 0;
  }
  std::string text;
  try {
    text = to_piper(read->schedule, read->schedule.stage_graph());
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParameter,
                      "what has no word is refused as such");
  }
  if (!text.empty()) {
    const sc::PiperSchedule again = sc::parse_piper(text);
    sc::fuzz::require(again.schedule == read->schedule, "printed directives read back the same");
    sc::fuzz::require(!again.says_more, "printed directives say what a schedule holds");
  }
  sc::fuzz::exercise(read->schedule, {});
  return 0;
}
