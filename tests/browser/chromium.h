/// A headless Chromium that a test drives as a user would, over its DevTools pipe.
///
///     Chromium browser;                    // SKIPs the test where there is none
///     Page page(browser, folder.write("page.html", html), {.width = 1200});
///     page.click(page.locate("1F3"));
///     CHECK(page.text("#selection h2") == "1F3");
///     CHECK(page.complaints().empty());
///
/// Messages are JSON ended by a zero byte (https://chromedevtools.github.io/devtools-protocol/).
/// Thread: the test's own.
/// B-1: no browser outlives its test; no answer is waited for longer than kAnswerLimit.
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

/// The program to start: $STAGECRAFT_CHROMIUM, or the first of Debian's names that PATH knows.
[[nodiscard]] std::optional<std::string> find_chromium();

class Chromium {
 public:
  /// Skips the test, with the reason, where there is no Chromium.
  /// Throws std::runtime_error when it does not start.
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
  /// Everything reported for the session so far.
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

struct Point {
  double x = 0;
  double y = 0;
};

struct Screenshot {
  std::string png;
  int width = 0;
  int height = 0;
  int colours = 0;  ///< how many different ones
};

struct PageOptions {
  int width = 1280;
  int height = 800;
  bool dark = false;
};

/// One tab with one loaded page.
class Page {
 public:
  /// Opens `path`, which may end in a fragment, and waits until it is loaded.
  Page(Chromium& browser, const std::string& path, const PageOptions& options = {});

  /// The value of an expression, after the page has painted.
  nlohmann::json evaluate(const std::string& expression);
  /// The text of the first element that matches, "" where none does.
  std::string text(const std::string& selector);
  std::size_t count(const std::string& selector);
  /// The middle of an element.
  Point middle_of(const std::string& selector);
  /// Where the page draws a task.
  Point locate(const std::string& task);

  void move_to(Point at);
  void click(Point at);
  void drag(Point from, Point to);
  void wheel(Point at, double down);
  /// A key by its name ("ArrowRight", "+").
  void press(const std::string& key);

  Screenshot screenshot();
  /// What the console, the page's errors and the browser's log said.
  [[nodiscard]] std::vector<std::string> complaints() const;
  /// The addresses that the page asked for, its own first.
  [[nodiscard]] std::vector<std::string> requests() const;

 private:
  nlohmann::json call(const std::string& method,
                      const nlohmann::json& parameters = nlohmann::json::object());
  void mouse(const char* type, Point at, int buttons);

  Chromium& browser_;
  std::string session_;
};

}  // namespace stagecraft::tests
