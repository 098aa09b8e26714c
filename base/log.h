/// log writes lines of a fixed phrase plus fields: `step done rank=1 step=7 ms=12.5`.
///
/// The phrase never varies, so lines can be searched and counted; the fields hold the values. Lines
/// go to standard error, because standard output belongs to a command's results. Only the actors,
/// the trainer and the data port's thread log. Lower layers return what they know, and commands
/// print. Any thread may log.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "stagecraft/base/ids.h"

namespace stagecraft {

enum class Level : std::uint8_t { Debug, Info, Warning, Error };

/// LogField is a name and its value as text. Callers make it in place: `{"rank", rank}`.
struct LogField {
  std::string_view name;
  std::string value;

  LogField(std::string_view field, std::string_view text) : name(field), value(text) {}
  LogField(std::string_view field, const char* text) : name(field), value(text) {}
  LogField(std::string_view field, const std::string& text) : name(field), value(text) {}
  LogField(std::string_view field, bool yes) : name(field), value(yes ? "true" : "false") {}
  LogField(std::string_view field, double number);
  template <class Int>
  requires std::is_integral_v<Int> LogField(std::string_view field, Int number)
      : name(field), value(std::to_string(number)) {}
  template <class Name, class Int>
  LogField(std::string_view field, StrongId<Name, Int> id) : name(field), value(to_string(id)) {}
};

/// Returns the text of one line. A value that contains a space, a quote or `=` is quoted.
[[nodiscard]] std::string log_line(std::string_view phrase, std::initializer_list<LogField> fields);

/// Returns whether to log an event after it has occurred `times` times: the first time, then ever
/// more rarely.
[[nodiscard]] constexpr bool is_logged(std::int64_t times) {
  return (times & (times - 1)) == 0;
}

/// Writes one line to standard error if `level` is Warning or Error.
void log(Level level, std::string_view phrase, std::initializer_list<LogField> fields = {});

}  // namespace stagecraft
