#include "stagecraft/tests/browser/page.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace stagecraft::tests {
namespace {

std::string from_base64(const std::string& text) {
  std::string out;
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0) {
      break;  // padding
    }
    bits = bits << 6 | static_cast<unsigned>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(bits >> held & 255);
    }
  }
  return out;
}

}  // namespace

Page::Page(Chromium& browser, const std::string& path, const PageOptions& options)
    : browser_(browser) {
  const auto target = browser_.call("Target.createTarget", {{"url", "about:blank"}});
  session_ = browser_.call("Target.attachToTarget",
                           {{"targetId", target["targetId"]}, {"flatten", true}})["sessionId"];
  call("Page.enable");
  call("Runtime.enable");
  call("Log.enable");
  call("Network.enable");
  call("Emulation.setDeviceMetricsOverride",
       {{"width", options.width},
        {"height", options.height},
        {"deviceScaleFactor", 1},
        {"mobile", false}});
  call("Emulation.setEmulatedMedia",
       {{"features",
         {{{"name", "prefers-color-scheme"}, {"value", options.dark ? "dark" : "light"}}}}});
  const bool is_address = path.find("://") != std::string::npos;
  call("Page.navigate", {{"url", is_address ? path : "file://" + path}});
  browser_.wait_for_event("Page.loadEventFired", session_);
}

nlohmann::json Page::call(const std::string& method, const nlohmann::json& parameters) {
  return browser_.call(method, parameters, session_);
}

nlohmann::json Page::evaluate(const std::string& expression) {
  // Waits for two frames: the first may have begun before the last change.
  const auto answer =
      call("Runtime.evaluate",
           {{"expression",
             "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
             ".then(() => (" +
                 expression + "))"},
            {"awaitPromise", true},
            {"returnByValue", true}});
  if (answer.contains("exceptionDetails")) {
    throw std::runtime_error(expression + ": " + answer["exceptionDetails"].dump());
  }
  return answer["result"].value("value", nlohmann::json());
}

std::string Page::text(const std::string& selector) {
  return evaluate("document.querySelector(" + nlohmann::json(selector).dump() +
                  ")?.innerText ?? ''");
}

std::size_t Page::count(const std::string& selector) {
  return evaluate("document.querySelectorAll(" + nlohmann::json(selector).dump() + ").length");
}

Point Page::middle_of(const std::string& selector) {
  const auto box = evaluate(
      "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
      "(document.querySelector(" +
      nlohmann::json(selector).dump() + ").getBoundingClientRect())");
  return {box[0], box[1]};
}

Point Page::locate(const std::string& task) {
  const auto at = evaluate("window.locateTask(" + nlohmann::json(task).dump() + ")");
  if (at.is_null()) {
    throw std::runtime_error("the page has no task " + task);
  }
  return {at["x"], at["y"]};
}

void Page::mouse(const char* type, Point at, int buttons) {
  call("Input.dispatchMouseEvent",
       {{"type", type},
        {"x", at.x},
        {"y", at.y},
        {"button", buttons == 0 && std::string(type) == "mouseMoved" ? "none" : "left"},
        {"buttons", buttons},
        {"clickCount", 1}});
}

void Page::move_to(Point at) {
  mouse("mouseMoved", at, 0);
}

void Page::click(Point at) {
  move_to(at);
  mouse("mousePressed", at, 1);
  mouse("mouseReleased", at, 0);
}

void Page::drag(Point from, Point to) {
  move_to(from);
  mouse("mousePressed", from, 1);
  mouse("mouseMoved", {(from.x + to.x) / 2, (from.y + to.y) / 2}, 1);
  mouse("mouseMoved", to, 1);
  mouse("mouseReleased", to, 0);
}

void Page::wheel(Point at, double down) {
  call("Input.dispatchMouseEvent",
       {{"type", "mouseWheel"}, {"x", at.x}, {"y", at.y}, {"deltaX", 0}, {"deltaY", down}});
}

void Page::press(const std::string& key) {
  const std::string text = key == "Enter" ? "\r" : key.size() == 1 ? key : "";
  nlohmann::json event{{"type", text.empty() ? "rawKeyDown" : "keyDown"}, {"key", key}};
  if (!text.empty()) {
    event["text"] = text;
  }
  if (key == "Enter") {
    event["windowsVirtualKeyCode"] = 13;  // without it no form is sent
  }
  call("Input.dispatchKeyEvent", event);
  call("Input.dispatchKeyEvent", {{"type", "keyUp"}, {"key", key}});
}

Screenshot Page::screenshot() {
  (void)evaluate("0");  // painted
  const std::string data = call("Page.captureScreenshot", {{"format", "png"}})["data"];
  const auto seen = evaluate(R"((async () => {
    const bytes = Uint8Array.from(atob(")" +
                             data + R"("), (c) => c.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, image.width, image.height).data;
    return [image.width, image.height, new Set(new Uint32Array(pixels.buffer)).size];
  })())");
  return {.png = from_base64(data), .width = seen[0], .height = seen[1], .colors = seen[2]};
}

std::vector<std::string> Page::complaints() const {
  std::vector<std::string> found;
  for (const nlohmann::json& event : browser_.events(session_)) {
    const std::string method = event["method"];
    if (method == "Runtime.consoleAPICalled" || method == "Runtime.exceptionThrown" ||
        method == "Log.entryAdded") {
      found.push_back(event["params"].dump());
    }
  }
  return found;
}

std::vector<std::string> Page::requests() const {
  std::vector<std::string> found;
  for (const nlohmann::json& event : browser_.events(session_)) {
    if (event["method"] == "Network.requestWillBeSent") {
      found.push_back(event["params"]["request"]["url"]);
    }
  }
  return found;
}

void save(const Screenshot& shot, const std::string& name) {
  const std::filesystem::path folder = STAGECRAFT_SCREENSHOTS;
  std::filesystem::create_directories(folder);
  std::ofstream(folder / (name + ".png"), std::ios::binary) << shot.png;
}

}  // namespace stagecraft::tests
