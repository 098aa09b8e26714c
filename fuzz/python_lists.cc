/// JaxPP's arrays and the zero-bubble scheduler's lists: an accepted text can be printed and reads
/// back the same.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/exercise.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/scheduler/formats/jaxpp.h"
#include "stagecraft/scheduler/formats/zero_bubble.h"

namespace sc = stagecraft;

namespace {

/// Returns nothing if `errc` is thrown, which is the only way to refuse.
template <class Call>
auto allowed(sc::Errc errc, Call&& call) -> std::optional<decltype(call())> {
  try {
    return call();
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == errc, "a text is refused as such");
    return std::nullopt;
  }
}

template <class Parse, class Print>
void both_ways(std::string_view text, Parse&& parse, Print&& print) {
  const auto read = allowed(sc::Errc::ScheduleParse, [&] { return parse(text); });
  if (!read) {
    return;
  }
  const auto printed =
      allowed(sc::Errc::ScheduleParameter, [&] { return print(*read, read->stage_graph()); });
  if (printed) {
    sc::fuzz::require(parse(*printed) == *read, "a printed list reads back the same cells");
  }
  sc::fuzz::exercise(*read, {});
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  both_ways(text, sc::parse_jaxpp, sc::to_jaxpp);
  both_ways(text, sc::parse_zero_bubble, sc::to_zero_bubble);
  return 0;
}
