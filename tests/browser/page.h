/// Opens a page in a browser, and reads and handles it as its user would.
///
///     Chromium browser;  // skips the test where there is none
///     Page page(browser, folder.write("page.html", html), {.width = 1200});
///     page.click(page.locate("1F3"));
///     CHECK(page.text("#selection h2") == "1F3");
///     CHECK(page.complaints().empty());
///
/// Thread: the test's own.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/browser/chromium.h"

namespace stagecraft::tests {

struct Point {
  double x = 0;
  double y = 0;
};

struct Screenshot {
  std::string png;
  int width = 0;
  int height = 0;
  int colors = 0;  ///< how many different colors
};

/// Leaves the picture as `name`.png in the build folder's screenshots/ for people to look at.
void save(const Screenshot& shot, const std::string& name);

struct PageOptions {
  int width = 1280;
  int height = 800;
  bool dark = false;
};

/// Holds one tab with one loaded page.
class Page {
 public:
  /// Opens `path`, which may end in a fragment, or an address, and waits until it is loaded.
  Page(Chromium& browser, const std::string& path, const PageOptions& options = {});

  /// Returns the value of an expression after the page has painted.
  nlohmann::json evaluate(const std::string& expression);
  /// Returns the text of the first element that matches, "" if none does.
  std::string text(const std::string& selector);
  std::size_t count(const std::string& selector);
  /// Returns the middle of an element.
  Point middle_of(const std::string& selector);
  /// Returns where the page draws a task.
  Point locate(const std::string& task);

  void move_to(Point at);
  void click(Point at);
  void drag(Point from, Point to);
  void wheel(Point at, double down);
  /// Presses a key by its name ("ArrowRight", "+").
  void press(const std::string& key);

  Screenshot screenshot();
  /// Returns the messages of the console, the page's errors and the browser's log.
  [[nodiscard]] std::vector<std::string> complaints() const;
  /// Returns the addresses that the page requested, its own first.
  [[nodiscard]] std::vector<std::string> requests() const;

 private:
  nlohmann::json call(const std::string& method,
                      const nlohmann::json& parameters = nlohmann::json::object());
  void mouse(const char* type, Point at, int buttons);

  Chromium& browser_;
  std::string session_;
};

}  // namespace stagecraft::tests
