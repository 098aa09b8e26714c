/// Drives a headless Chromium over its DevTools pipe; page.h shows how a test uses it.
///
/// Messages are JSON ended by a zero byte (https://chromedevtools.github.io/devtools-protocol/).
/// Thread: the test's own.
/// CH-1: no browser outlives its test; no wait for an answer is longer than kAnswerLimit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

inline constexpr std::chrono::seconds kAnswerLimit{60};

/// Returns the program to start: $STAGECRAFT_CHROMIUM, or the first of Debian's names found in
/// PATH.
[[nodiscard]] std::optional<std::string> find_chromium();

class Chromium {
 public:
  /// Skips the test, with the reason, if there is no Chromium. Throws std::runtime_error if it does
  /// not start.
  Chromium();
  ~Chromium();
  Chromium(const Chromium&) = delete;
  Chromium& operator=(const Chromium&) = delete;

  /// Sends a command and returns its result; throws std::runtime_error for an error or no answer.
  nlohmann::json call(const std::string& method,
                      const nlohmann::json& parameters = nlohmann::json::object(),
                      const std::string& session = "");
  /// Reads until `method` is reported for the session.
  void wait_for_event(const std::string& method, const std::string& session);
  /// Returns everything reported for the session so far.
  [[nodiscard]] std::vector<nlohmann::json> events(const std::string& session) const;

 private:
  nlohmann::json read_message(std::chrono::steady_clock::time_point deadline);

  TemporaryFolder profile_;
  pid_t pid_ = -1;
  int commands_ = -1;
  int answers_ = -1;
  int last_id_ = 0;
  std::string received_;
  std::vector<nlohmann::json> events_;
};

}  // namespace stagecraft::tests
