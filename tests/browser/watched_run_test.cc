/// Tests the page of a real run in a browser: it follows the run, shows a rank that hangs, and its
/// buttons are obeyed.

#include <csignal>
#include <filesystem>
#include <regex>
#include <string>

#include "stagecraft/tests/browser/page.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Holds a small run of two worker processes that does not end by itself.
class EndlessRun {
 public:
  EndlessRun()
      : log_(folder_.path() + "/log"),
        run_({"sh",
              "-c",
              "STAGECRAFT_SILENCE_SECONDS=60 exec '" STAGECRAFT_COMMAND
              "' train --layers 4 --dim 32 --heads 2 --ffn 48 --seq 16 --microbatch-size 2 "
              "--microbatches 4 --stages 2 --steps 1000000000 --workers processes --serve --json "
              "> '" +
                  log_ + "'"}) {
    REQUIRE(eventually([&] {
      return std::filesystem::exists(log_) &&
             read_text_file(log_).find("\"event\":\"step\"") != std::string::npos;
    }));
  }

  [[nodiscard]] std::string link() const {
    std::smatch found;
    const std::string text = read_text_file(log_);
    REQUIRE(std::regex_search(text, found, std::regex(R"(http://[^"]*token=[0-9a-f]+)")));
    return found[0];
  }
  CommandResult wait() { return run_.wait(); }

 private:
  TemporaryFolder folder_;
  std::string log_;
  RunningCommand run_;
};

/// Lets the page hear the answers to its wishes only when it has shown the end of the run.
void delay_answers(Page& page) {
  (void)page.evaluate(R"((() => {
    const send = window.fetch;
    window.fetch = async (...wish) => {
      const answer = await send(...wish);
      while (document.getElementById("phase").textContent !== "ended") {
        await new Promise((go) => setTimeout(go, 10));
      }
      setTimeout(() => { window.isAnswered = true; }, 100);
      return answer;
    };
    return true;
  })())");
}

int step_of(Page& page) {
  const std::string facts = page.text("#facts");
  std::smatch found;
  return std::regex_search(facts, found, std::regex(R"(step\s+(\d+))")) ? std::stoi(found[1]) : 0;
}

}  // namespace

TEST_CASE("the page follows a run, pauses it and ends it", "[browser]") {
  EndlessRun run;
  Chromium browser;
  Page page(browser, run.link(), {.width = 1280, .height = 1400});
  const int first = step_of(page);
  CHECK(eventually([&] { return step_of(page) > first; }));
  CHECK(page.text("#phase") == "running");
  CHECK(page.count("#timeline .cell") == 16);
  CHECK(page.count("#workers tr") == 3);

  page.click(page.middle_of("#pause"));
  CHECK(eventually([&] { return page.text("#phase") == "paused"; }));
  page.click(page.middle_of("#pause"));
  CHECK(eventually([&] { return page.text("#phase") == "running"; }));
  delay_answers(page);
  page.click(page.middle_of("#stop"));
  CHECK(run.wait().exit_code == 0);
  CHECK(eventually([&] { return page.evaluate("window.isAnswered === true").get<bool>(); }));
  CHECK(page.text("#phase") == "ended");
  CHECK_THAT(page.text("#said"), ContainsSubstring("stopped after step"));
  save(page.screenshot(), "watched-run-ended");
}

TEST_CASE("a rank that hangs is named, and then the end of the run", "[browser]") {
  EndlessRun run;
  Chromium browser;
  Page page(browser, run.link(), {.width = 1280, .height = 1400});
  const std::string workers = page.text("#workers");
  std::smatch found;
  REQUIRE(std::regex_search(workers, found, std::regex(R"(process (\d+))")));
  const pid_t worker = std::stoi(found[1]);
  REQUIRE(kill(worker, SIGSTOP) == 0);
  CHECK(eventually([&] { return page.text("#waits").find("silent") != std::string::npos; }));
  save(page.screenshot(), "watched-run-late");
  REQUIRE(kill(worker, SIGKILL) == 0);
  CHECK(run.wait().exit_code == 1);
  CHECK(eventually([&] { return page.text("#said").find("is lost") != std::string::npos; }));
}

}  // namespace stagecraft::tests
