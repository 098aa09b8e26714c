#include "stagecraft/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace stagecraft {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::Debug:
      return spdlog::level::debug;
    case Level::Info:
      return spdlog::level::info;
    case Level::Warning:
      return spdlog::level::warn;
    case Level::Error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

/// Returns a logger outside spdlog's registry, which the embedding program may use as it likes. Its
/// sink has the only lock, which keeps the lines of several threads whole.
spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("stagecraft", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made.set_pattern("%H:%M:%S.%e %^%l%$ %v");
    made.set_level(spdlog_level(Level::Warning));
    made.flush_on(spdlog::level::warn);
    return made;
  }();
  return instance;
}

std::string quoted(const std::string& value) {
  if (!value.empty() && value.find_first_of(" =\"\\\t\r\n") == std::string::npos) {
    return value;
  }
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
    }
    if (c == '\n') {
      text += "\\n";  // one event stays one line
    } else {
      text += c;
    }
  }
  return text + '"';
}

}  // namespace

LogField::LogField(std::string_view field, double number)
    : name(field), value(fmt::format("{}", number)) {}

std::string log_line(std::string_view phrase, std::initializer_list<LogField> fields) {
  std::string line(phrase);
  for (const LogField& field : fields) {
    line += fmt::format(" {}={}", field.name, quoted(field.value));
  }
  return line;
}

void log(Level level, std::string_view phrase, std::initializer_list<LogField> fields) {
  if (logger().should_log(spdlog_level(level))) {
    logger().log(spdlog_level(level), log_line(phrase, fields));
  }
}

}  // namespace stagecraft
