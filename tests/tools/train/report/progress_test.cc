#include "stagecraft/tools/train/report/progress.h"

#include <csignal>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/train/report/quiet_progress.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

const StepLine kStep{.step = 3,
                     .steps = 50,
                     .loss = 4.5,
                     .tokens = 2048,
                     .seconds = 0.5,
                     .bubble = 0.25,
                     .learning_rate = 0.01,
                     .gradient_norm = 2.0,
                     .slowest = "stage 2",
                     .eta_seconds = 95};

/// Every line begins with it.
const std::string kHead = R"({"stagecraft":"train","version":1,)";

/// Holds what a progress of that form prints.
struct Said {
  explicit Said(ProgressForm form) : progress(make_progress(form, output)) {}
  [[nodiscard]] std::string text() const { return out.str(); }

  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  RunOutput output{console};
  std::unique_ptr<Progress> progress;
};

}  // namespace

TEST_CASE("a JSON run is one object per line with the keys in their order", "[tools][progress]") {
  const Said said(ProgressForm::JsonLines);
  said.progress->step(kStep);
  said.progress->text("for people only\n");
  said.progress->verified(
      {.bit_equal = true, .max_abs_diff = 0.0, .losses = 50, .parameters = 39, .buffers = 2});
  said.progress->done(
      {.steps = 50, .loss = 2.5, .steps_per_second = 8.5, .tokens = 2000, .weights_sha256 = "ab"});
  CHECK(
      said.text() ==
      kHead +
          R"("event":"step","step":3,"loss":4.5,"tokens":2048,"seconds":0.5,"bubble_fraction":0.25,"learning_rate":0.01,"gradient_norm":2.0})"
          "\n" +
          kHead +
          R"("event":"verify","bit_equal":true,"max_abs_diff":0.0,"losses":50,"parameters":39,"buffers":2})"
          "\n" +
          kHead +
          R"("event":"done","steps":50,"loss":2.5,"tokens_per_second":17000.0,"weights_sha256":"ab"})"
          "\n");
}

TEST_CASE("a JSON verify that failed names the first difference", "[tools][progress]") {
  const Said said(ProgressForm::JsonLines);
  said.progress->verified({.bit_equal = false, .first_difference = "step 2"});
  CHECK(nlohmann::json::parse(said.text()).at("first_difference") == "step 2");
}

TEST_CASE("a verify tells which buffers it left out", "[tools][progress]") {
  const VerifyLine line{.bit_equal = true,
                        .good = true,
                        .losses = 3,
                        .parameters = 2,
                        .buffers = 1,
                        .reordered_buffers = {"norm.mean", "norm.var"}};
  const Said people(ProgressForm::Plain), programs(ProgressForm::JsonLines);
  people.progress->verified(line);
  programs.progress->verified(line);
  CHECK(people.text() ==
        "verify: bit-equal to one process (3 losses, 2 parameters, 1 buffer)\n"
        "verify: not compared, because forwards write them in another order than one process: "
        "norm.mean, norm.var\n");
  CHECK(nlohmann::json::parse(programs.text()).at("reordered_buffers") ==
        nlohmann::json{"norm.mean", "norm.var"});
}

TEST_CASE("a report is text for people and one object for programs", "[tools][progress]") {
  const Said people(ProgressForm::Plain), programs(ProgressForm::JsonLines);
  people.progress->report("the makespan\n", {{"makespan", 1}});
  programs.progress->report("the makespan\n", {{"makespan", 1}});
  CHECK(people.text() == "the makespan\n");
  CHECK(programs.text() == kHead + "\"makespan\":1}\n");
}

TEST_CASE("a plain run prints a line per step", "[tools][progress]") {
  const Said said(ProgressForm::Plain);
  said.progress->step(kStep);
  said.progress->step(kStep);
  const std::string line =
      "step 3/50  loss 4.5000  4096 tokens/s  bubble 25 %  slowest stage 2  ETA 1m35s\n";
  CHECK(said.text() == line + line);
}

TEST_CASE("a live run overwrites its line and leaves it before other text", "[tools][progress]") {
  const Said said(ProgressForm::Live);
  said.progress->step(kStep);
  said.progress->step(kStep);
  CHECK_THAT(said.text(), !ContainsSubstring("\n"));
  said.progress->done({.steps = 50, .loss = 2.5});
  CHECK_THAT(said.text(), ContainsSubstring("\ndone: step 50"));
}

TEST_CASE("where no tokens are, steps are counted", "[tools][progress]") {
  const Said people(ProgressForm::Plain), programs(ProgressForm::JsonLines);
  StepLine step = kStep;
  step.tokens.reset();
  for (const Said* said : {&people, &programs}) {
    said->progress->step(step);
    said->progress->saved_weights(3, "w");
    said->progress->done({.steps = 50, .loss = 2.5, .steps_per_second = 8.5});
  }
  CHECK_THAT(people.text(),
             ContainsSubstring("loss 4.5000  2 steps/s  bubble") &&
                 ContainsSubstring("saved the weights of step 3 to w\n") &&
                 ContainsSubstring("loss 2.5000, 8.5 steps/s\n"));
  CHECK_THAT(programs.text(), ContainsSubstring(R"("steps_per_second":8.5)"));
  CHECK_THAT(programs.text(), !ContainsSubstring("tokens"));
}

TEST_CASE("the end of a run says nothing of results that were lost", "[tools][progress]") {
  const Said people(ProgressForm::Plain), programs(ProgressForm::JsonLines);
  people.progress->done({.steps = 5, .steps_per_second = 2.0, .weights_sha256 = "ab"});
  people.progress->done({.steps = 5, .tokens = 64, .weights_sha256 = "ab"});
  CHECK(people.text() == "done: step 5, 2 steps/s\ndone: step 5\n");
  programs.progress->done({.steps = 5, .tokens = 64, .weights_sha256 = "ab"});
  CHECK(programs.text() == kHead + R"("event":"done","steps":5,"weights_sha256":"ab"})" + "\n");
}

TEST_CASE("a quiet run tells notes, a failed comparison and its end", "[tools][progress]") {
  Said said(ProgressForm::Plain);
  said.progress = make_quiet_progress(std::move(said.progress));
  said.progress->step(kStep);
  said.progress->report("a table\n", {});
  said.progress->text("a header\n");
  said.progress->saved(3, "file");
  said.progress->verified({.bit_equal = true, .good = true});
  CHECK(said.text().empty());
  said.progress->note("note: other processors\n", {});
  said.progress->verified({.bit_equal = false, .good = false, .first_difference = "step 2"});
  said.progress->done({.steps = 50, .loss = 2.5, .steps_per_second = 8.5});
  CHECK(said.text() ==
        "note: other processors\n"
        "verify: NOT bit-equal to one process: step 2; largest difference 0\n"
        "done: step 50, loss 2.5000, 8.5 steps/s\n");
  Said programs(ProgressForm::JsonLines);
  programs.progress = make_quiet_progress(std::move(programs.progress));
  programs.progress->report("a table\n", {});
  programs.progress->note("note: other processors\n", {{"event", "other_processors"}});
  CHECK(programs.text() == kHead + "\"event\":\"other_processors\"}\n");
}

TEST_CASE("a run that is interrupted says by which signal", "[tools][progress]") {
  const Said people(ProgressForm::Plain), programs(ProgressForm::JsonLines);
  people.progress->interrupted(7, SIGTERM);
  programs.progress->interrupted(7, SIGHUP);
  CHECK(people.text() == "interrupted by SIGTERM after step 7\n");
  CHECK(programs.text() == kHead + "\"event\":\"interrupted\",\"step\":7,\"signal\":\"SIGHUP\"}\n");
}

TEST_CASE("a file whose name is not UTF-8 is told all the same", "[tools][progress]") {
  const Said said(ProgressForm::JsonLines);
  said.progress->saved(3, "caf\xE9.ckpt");
  CHECK(nlohmann::json::parse(said.text()).at("file") == "caf\xEF\xBF\xBD.ckpt");
}

TEST_CASE("nothing more is written once writing has failed", "[tools][progress]") {
  Said said(ProgressForm::Plain);
  said.progress->text("one\n");
  CHECK(said.output.failure().empty());
  said.out.setstate(std::ios::badbit);
  said.progress->text("two\n");
  CHECK_THAT(said.output.failure(), ContainsSubstring("standard output cannot be written"));
  said.out.clear();
  said.progress->text("three\n");
  CHECK(said.text() == "one\n");
}

}  // namespace stagecraft::tools
