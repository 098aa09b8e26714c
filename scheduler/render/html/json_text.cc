#include "stagecraft/scheduler/render/html/json_text.h"

#include <cmath>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::drawing {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) {
    throw Error(Errc::ScheduleParameter,
                "a page shows only finite times, but the timeline has another; look for an "
                "infinite duration or a bandwidth of 0 in the costs");
  }
  return fmt::format("{:.10g}", value);
}

}  // namespace stagecraft::drawing
