#include "stagecraft/tools/train/progress.h"

#include <sstream>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

const StepLine kStep{.step = 3,
                     .steps = 50,
                     .loss = 4.5,
                     .tokens = 2048,
                     .seconds = 0.5,
                     .bubble = 0.25,
                     .slowest = "stage 2",
                     .eta_seconds = 95};

}  // namespace

TEST_CASE("a JSON run is one object per line with the keys in their order", "[tools][progress]") {
  std::ostringstream out;
  const auto progress = make_progress(ProgressForm::Json, out);
  progress->step(kStep);
  progress->text("for people only\n");
  progress->verified(
      {.bit_equal = true, .max_abs_diff = 0.0, .losses = 50, .parameters = 39, .buffers = 2});
  progress->done({.steps = 50, .loss = 2.5, .tokens_per_second = 17000.0, .weights_sha256 = "ab"});
  CHECK(
      out.str() ==
      R"({"event":"step","step":3,"loss":4.5,"tokens":2048,"seconds":0.5,"bubble":0.25})"
      "\n"
      R"({"event":"verify","bit_equal":true,"max_abs_diff":0.0,"losses":50,"parameters":39,"buffers":2})"
      "\n"
      R"({"event":"done","steps":50,"loss":2.5,"tokens_per_second":17000.0,"weights_sha256":"ab"})"
      "\n");
}

TEST_CASE("a JSON verify that failed names the first difference", "[tools][progress]") {
  std::ostringstream out;
  make_progress(ProgressForm::Json, out)
      ->verified({.bit_equal = false, .first_difference = "step 2"});
  CHECK(nlohmann::json::parse(out.str()).at("first_difference") == "step 2");
}

TEST_CASE("a verify tells which buffers it left out", "[tools][progress]") {
  std::ostringstream people, programs;
  const VerifyLine line{.bit_equal = true,
                        .good = true,
                        .losses = 3,
                        .parameters = 2,
                        .buffers = 1,
                        .reordered_buffers = {"norm.mean", "norm.var"}};
  make_progress(ProgressForm::Plain, people)->verified(line);
  make_progress(ProgressForm::Json, programs)->verified(line);
  CHECK(people.str() ==
        "verify: bit-equal to one process (3 losses, 2 parameters, 1 buffers)\n"
        "verify: not compared, because forwards write them in another order than one process: "
        "norm.mean, norm.var\n");
  CHECK(nlohmann::json::parse(programs.str()).at("reordered_buffers") ==
        nlohmann::json{"norm.mean", "norm.var"});
}

TEST_CASE("a report is text for people and one object for programs", "[tools][progress]") {
  std::ostringstream people, programs;
  make_progress(ProgressForm::Plain, people)->report("the makespan\n", R"({"makespan":1})");
  make_progress(ProgressForm::Json, programs)->report("the makespan\n", R"({"makespan":1})");
  CHECK(people.str() == "the makespan\n");
  CHECK(programs.str() == "{\"makespan\":1}\n");
}

TEST_CASE("a plain run prints a line per step", "[tools][progress]") {
  std::ostringstream out;
  const auto progress = make_progress(ProgressForm::Plain, out);
  progress->step(kStep);
  progress->step(kStep);
  const std::string line =
      "step 3/50  loss 4.5000  4096 tokens/s  bubble 25 %  slowest stage 2  ETA 1m35s\n";
  CHECK(out.str() == line + line);
}

TEST_CASE("a live run overwrites its line and leaves it before other text", "[tools][progress]") {
  std::ostringstream out;
  const auto progress = make_progress(ProgressForm::Live, out);
  progress->step(kStep);
  progress->step(kStep);
  CHECK_THAT(out.str(), !ContainsSubstring("\n"));
  progress->done({.steps = 50, .loss = 2.5});
  CHECK_THAT(out.str(), ContainsSubstring("\ndone: step 50"));
}

}  // namespace stagecraft::tools
