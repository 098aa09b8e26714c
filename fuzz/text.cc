/// The text form: an accepted text can be printed and reads back the same.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/exercise.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace sc = stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<sc::Schedule> read;
  try {
    read = sc::Schedule::parse({reinterpret_cast<const char*>(data), size});
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "a text is refused as such");
    return 0;
  }
  const sc::Schedule again = sc::Schedule::parse(to_string(*read));
  sc::fuzz::require(again == *read, "printed text reads back the same cells");
  sc::fuzz::require(sc::fuzz::same_headers(again, *read),
                    "printed text reads back the same headers");
  sc::fuzz::exercise(*read);
  return 0;
}
