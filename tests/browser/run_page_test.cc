/// Tests the page of render_run_page() in a real browser: a run, a late one, and one that has
/// ended.
#include "stagecraft/scheduler/render/html/run_page.h"

#include <string>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/browser/page.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

/// Returns the state of a run on two ranks after its second step.
Json run_state() {
  return Json::parse(R"({
    "stagecraft": "watch", "version": 1, "phase": "running", "end": "", "model": "llama<b>",
    "schedule": "1f1b", "step": 2, "steps": 10, "loss": 1.25, "seconds": 0.5,
    "counted": "tokens", "counted_total": 128, "per_second": 128.0, "bubble_fraction": 0.25,
    "learning_rate": 0.1, "gradient_norm": 1.0, "running_seconds": 0.1, "waits": "",
    "restarts": 0, "repeated_steps": 0, "healing_seconds": 0.0,
    "takes_checkpoints": true,
    "ranks": [{"rank": 0, "stages": "0", "place": "thread", "billed_bytes": 2048,
               "forward_seconds": 0.1, "backward_seconds": 0.2, "update_seconds": 0.01,
               "waiting_seconds": 0.1, "peak_bytes": 1024},
              {"rank": 1, "stages": "1", "place": "thread", "billed_bytes": 1024,
               "forward_seconds": 0.1, "backward_seconds": 0.2, "update_seconds": 0.01,
               "waiting_seconds": 0.1, "peak_bytes": 2048}],
    "sent": [], "curve": {"step": [1, 2], "loss": [2.5, 1.25], "seconds": [1.0, 0.5],
                          "per_second": [64.0, 128.0]},
    "timeline": {"step": 2, "makespan_seconds": 4.0, "rows": [
      {"ranks": [0], "cells": [{"cell": "0F0", "start_seconds": 0.0, "end_seconds": 1.0},
                               {"cell": "0B0", "start_seconds": 3.0, "end_seconds": 4.0}],
       "waits": [{"cause": "dependency", "start_seconds": 1.0, "end_seconds": 3.0}]},
      {"ranks": [1], "cells": [{"cell": "1F0", "start_seconds": 1.0, "end_seconds": 2.0},
                               {"cell": "1B0", "start_seconds": 2.0, "end_seconds": 3.0}],
       "waits": [{"cause": "warm_up", "start_seconds": 0.0, "end_seconds": 1.0},
                 {"cause": "drain", "start_seconds": 3.0, "end_seconds": 4.0}]}]},
    "checkpoints": [{"step": 1, "file": "runs/step-1.ckpt"}],
    "messages": [{"step": 2, "text": "</script><b>note"}]})");
}

/// Opens the page of a state from a file: it has no server to follow.
class RunPage {
 public:
  Page open(const Json& state, const PageOptions& options = {.width = 1280, .height = 1400}) {
    return Page(browser_, folder_.write("run.html", render_run_page("Run", state.dump())), options);
  }

 private:
  Chromium browser_;
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a run is drawn without a complaint, light, dark and narrow", "[browser]") {
  struct Look {
    const char* name;
    PageOptions options;
  };
  const Look looks[] = {{"run", {.width = 1280, .height = 1400}},
                        {"run-dark", {.width = 1280, .height = 1400, .dark = true}},
                        {"run-narrow", {.width = 420, .height = 1400}}};
  RunPage run;
  for (const Look& look : looks) {
    CAPTURE(look.name);
    Page page = run.open(run_state(), look.options);
    CHECK(page.evaluate("document.documentElement.dataset.ready") == "yes");
    save(page.screenshot(), look.name);
    CHECK(page.complaints() == std::vector<std::string>());
    CHECK(page.requests().size() == 1);
    CHECK(page.evaluate("document.documentElement.scrollWidth") == look.options.width);
    CHECK(page.text("#phase") == "running");
    CHECK_THAT(page.text("#title"), ContainsSubstring("llama<b> by 1f1b"));
    CHECK_THAT(page.text("#facts"), ContainsSubstring("2 of 10") && ContainsSubstring("1.25"));
    CHECK(page.count(".curve") == 2);
    CHECK(page.count("#timeline .cell") == 4);
    CHECK(page.count("#timeline .wait") == 3);
    CHECK_THAT(page.text("#causes"), ContainsSubstring("dependency 25.0 %"));
    CHECK(page.count("#memory .over") == 1);  // rank 1 holds more than its bill
    CHECK(page.count("#workers tr") == 3);
    CHECK_THAT(page.text("#checkpoints"), ContainsSubstring("runs/step-1.ckpt"));
    CHECK_THAT(page.text("#messages"), ContainsSubstring("</script><b>note"));
    CHECK(page.evaluate("document.getElementById('late').hidden") == true);
  }
}

TEST_CASE("a wait and a cell say what they are", "[browser]") {
  RunPage run;
  Page page = run.open(run_state());
  page.move_to(page.middle_of("#timeline .wait.dependency"));
  CHECK_THAT(page.text("#tooltip"), ContainsSubstring("dependency") && ContainsSubstring("2 s"));
  page.move_to(page.middle_of("#timeline .cell"));
  CHECK_THAT(page.text("#tooltip"), ContainsSubstring("0F0") && ContainsSubstring("1 s"));
}

TEST_CASE("a late step shows who waits for whom", "[browser]") {
  Json state = run_state();
  state["running_seconds"] = 7.5;
  state["waits"] = "rank 0 waits for 1B3 from rank 1, which has been in 1F3 for 7.1 s";
  RunPage run;
  Page page = run.open(state);
  save(page.screenshot(), "run-late");
  CHECK(page.evaluate("document.getElementById('late').hidden") == false);
  CHECK_THAT(page.text("#waits"),
             ContainsSubstring("After 7.5 s") && ContainsSubstring("rank 0 waits for 1B3"));
}

TEST_CASE("a run that was healed says how often, and what it cost", "[browser]") {
  Json state = run_state();
  RunPage run;
  CHECK_THAT(run.open(state).text("#facts"), !ContainsSubstring("restarts"));
  state["restarts"] = 2;
  state["repeated_steps"] = 1;
  state["healing_seconds"] = 0.5;
  CHECK_THAT(run.open(state).text("#facts"),
             ContainsSubstring("restarts 2 (1 step repeated, 500 ms)"));
}

TEST_CASE("a run that has ended keeps its last state and says so", "[browser]") {
  Json state = run_state();
  state["phase"] = "ended";
  state["end"] = "all 10 steps are done";
  state["loss"] = nullptr;
  state["timeline"] = nullptr;
  state["curve"]["loss"][1] = nullptr;
  RunPage run;
  Page page = run.open(state);
  CHECK(page.text("#phase") == "ended");
  CHECK_THAT(page.text("#said"), ContainsSubstring("all 10 steps are done"));
  CHECK(page.evaluate("document.getElementById('stop').disabled") == true);
  CHECK(page.evaluate("document.getElementById('timeline-section').hidden") == true);
  CHECK_THAT(page.text("#facts"), ContainsSubstring("not finite"));
  CHECK(page.complaints() == std::vector<std::string>());
}

TEST_CASE("a run without a folder takes no checkpoint, and a paused one goes on", "[browser]") {
  Json state = run_state();
  state["takes_checkpoints"] = false;
  state["phase"] = "paused";
  RunPage run;
  Page page = run.open(state);
  CHECK(page.evaluate("document.getElementById('checkpoint').disabled") == true);
  CHECK(page.text("#pause") == "Go on");
}

}  // namespace stagecraft::tests
