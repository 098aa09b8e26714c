/// The JSON form: an accepted text is JSON for other readers too.
#include "stagecraft/scheduler/formats/json/json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

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
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  try {
    (void)sc::parse_json(text);
  } catch (const sc::Error&) {
    return 0;
  }
  sc::fuzz::require(!plain(text) || is_json(text), "what is accepted is JSON to others too");
  return 0;
}
