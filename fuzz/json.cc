/// The JSON form: an accepted text is JSON for other readers too, can be printed and reads back the
/// same.
#include "stagecraft/scheduler/formats/json/json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/exercise.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

/// Returns false for a cell of a shape or kind that breaks V03 or V06, which has no JSON form.
bool printable(const sc::Schedule& schedule) {
  for (const sc::Schedule::Row& row : schedule.rows()) {
    for (const sc::Cell& cell : row) {
      for (const sc::Task& task : cell.tasks()) {
        if (task.kind < sc::CellKind::Forward || task.kind > sc::CellKind::Update) {
          return false;
        }
      }
    }
  }
  return true;
}

/// Returns whether the text has neither escapes beyond ASCII nor other bytes. This target does not
/// judge them, since no word of a schedule has any.
bool plain(std::string_view text) {
  return text.find("\\u") == std::string_view::npos &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Returns whether the text is JSON. A number beyond the range of double is JSON too.
bool is_json(std::string_view text) {
  try {
    return nlohmann::json::parse(text) != nullptr;
  } catch (const nlohmann::json::out_of_range&) {
    return true;
  } catch (const nlohmann::json::parse_error&) {
    return false;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<sc::Schedule> read;
  try {
    read = sc::parse_json({reinterpret_cast<const char*>(data), size});
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "a text is refused as such");
    return 0;
  }
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  sc::fuzz::require(!plain(text) || is_json(text), "what is accepted is JSON to others too");
  const sc::Schedule again = sc::parse_json(to_json(*read));
  sc::fuzz::require(!printable(*read) || again == *read, "printed JSON reads back the same cells");
  sc::fuzz::require(sc::fuzz::same_headers(again, *read),
                    "printed JSON reads back the same headers");
  sc::fuzz::exercise(*read);
  return 0;
}
