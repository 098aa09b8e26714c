/// Tests the promises of `stagecraft train` when everything is right: the same weights for any cut
/// and schedule, runs that resume without a trace, and output that programs can read.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include <ATen/ops/equal.h>

#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;

// Has two stages and four microbatches. It is neither gpipe nor 1f1b: row 1 takes the microbatches
// out of order.
constexpr const char* kOwnSchedule =
    "@stages 2\n"
    "@microbatches 4\n"
    "0F0 0F1 0F2 0F3 .   0B1 .   0B0 .   0B2 .   0B3\n"
    ".   .   1F1 1F0 1B1 .   1B0 1F2 1B2 1F3 1B3 .\n";

// Has two rows that hold four stages as a V: stages 0 and 3 on row 0, 1 and 2 on row 1.
constexpr const char* kVSchedule =
    "@stages 4\n"
    "@microbatches 2\n"
    "0F0 0F1 .   3F0 3B0 3F1 3B1 .   0B0 .   0B1\n"
    ".   1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1 .   .\n";

// Splits the backward in two: I makes the gradients of inputs, W those of weights, later.
constexpr const char* kSplitSchedule =
    "0F0 0F1 .   .   0I0 .   0I1 0W0 0W1\n"
    ".   1F0 1I0 1F1 1I1 1W0 1W1 .   .\n";

std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.insert(key);
  }
  return keys;
}

}  // namespace

TEST_CASE("a seed gives the same weights for every cut and schedule", "[tools][train]") {
  const std::vector<std::string> clip =
      GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--clip", "0.5"});
  const TemporaryFolder folder;
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), clip.begin(), clip.end());
    return train_json(more).sha256();
  };
  const std::string one = with({"--stages", "1", "--schedule", "gpipe"});
  CHECK_THAT(one, Matches("[0-9a-f]{64}"));
  CHECK(with({"--stages", "1", "--schedule", "1f1b"}) == one);
  CHECK(with({"--stages", "2", "--schedule", "gpipe"}) == one);
  CHECK(with({"--stages", "2", "--schedule", "1f1b"}) == one);
  CHECK(with({"--stages", "3", "--schedule", "1f1b"}) == one);
  CHECK(with({"--stages", "4", "--schedule", "gpipe"}) == one);
  CHECK(with({"--stages", "4", "--schedule", "1f1b"}) == one);
  CHECK(with({"--schedule", folder.write("own.sched", kOwnSchedule)}) == one);
}

TEST_CASE("what is recomputed keeps less and changes no bit", "[tools][train]") {
  const TrainOutput plain = train_json({"--stages", "2", "--verify"});
  for (const char* what : {"stage", "layers.1,layers.3.attention"}) {
    const TrainOutput output = train_json({"--stages", "2", "--verify", "--recompute", what});
    CHECK(output.sha256() == plain.sha256());
    CHECK(output.verify == plain.verify);
  }
  const auto planned = [](const std::string& what) {
    const CommandResult result =
        run_train({"--stages", "2", "--dry-run", "--json", "--recompute", what});
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out)["ranks"][0]["peak_activation_bytes"]
        .get<std::int64_t>();
  };
  CHECK(planned("stage") < planned("none"));
  const CommandResult wrong = run_train({"--stages", "2", "--recompute", "layer.1"});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err,
             ContainsSubstring("no part to recompute is called \"layer.1\": did you mean "
                               "layers.1?") &&
                 ContainsSubstring("layers.1.attention"));
}

TEST_CASE("in half types a pipeline has the bits of one process, and not those of float32",
          "[tools][train]") {
  const TrainOutput half = train_json({"--stages", "2", "--verify", "--precision", "bf16"});
  CHECK(half.verify == train_json({"--stages", "2", "--verify"}).verify);
  CHECK(half.sha256() == train_json({"--stages", "4", "--precision", "bf16"}).sha256());
  CHECK(half.sha256() != train_json({"--stages", "2"}).sha256());
  const TrainOutput float16 = train_json({"--stages", "2", "--verify", "--precision", "fp16"});
  CHECK(float16.verify == half.verify);
  CHECK(float16.sha256() == train_json({"--stages", "4", "--precision", "fp16"}).sha256());
  CHECK(float16.sha256() != half.sha256());
  const CommandResult wrong = run_train({"--precision", "fp8"});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("--precision expects fp32, bf16 or fp16, found 'fp8'"));
}

TEST_CASE("clipping, the seed and the learning rate change the weights", "[tools][train]") {
  const std::string plain = train_json({"--stages", "2"}).sha256();
  CHECK(train_json({"--stages", "2", "--clip", "0.5"}).sha256() != plain);
  CHECK(train_json({"--stages", "2", "--clip-value", "1e-3"}).sha256() != plain);
  CHECK(train_json({"--stages", "2", "--clip-value", "1e9"}).sha256() == plain);
  CHECK(train_json({"--stages", "2", "--average", "0.9"}).sha256() == plain);
  CHECK(train_json({"--stages", "2", "--freeze-for", "layers.0.*=1"}).sha256() != plain);
  CHECK(train_json({"--stages", "2", "--seed", "1"}).sha256() != plain);
  CHECK(train_json({"--stages", "2", "--lr", "1e-3"}).sha256() != plain);
  CHECK(train_json({"--stages", "2", "--warmup", "2"}).sha256() != plain);
  CHECK(train_json({"--stages", "2", "--lr-schedule", "cosine"}).sha256() != plain);
  CHECK(train_json({"--stages", "2", "--lr-schedule", "wsd", "--decay-steps", "2"}).sha256() !=
        plain);
}

TEST_CASE("verify finds every pipeline bit-equal to one process", "[tools][train][verify]") {
  const TemporaryFolder folder;
  const std::vector<std::string> pipeline =
      GENERATE(std::vector<std::string>{"--stages", "1"},
               std::vector<std::string>{"--stages", "2", "--schedule", "gpipe"},
               std::vector<std::string>{
                   "--stages", "2", "--lr-schedule", "wsd", "--warmup", "1", "--decay-steps", "2"},
               std::vector<std::string>{"--stages", "4", "--schedule", "1f1b"},
               std::vector<std::string>{
                   "--stages", "4", "--clip", "0.5", "--optimizer", "sgd", "--momentum", "0.9"},
               std::vector<std::string>{"--stages",
                                        "2",
                                        "--optimizer",
                                        "rmsprop",
                                        "--momentum",
                                        "0.5",
                                        "--lr-schedule",
                                        "linear",
                                        "--clip",
                                        "0.5",
                                        "--freeze",
                                        "layers.0.*",
                                        "--no-decay",
                                        "*.weight"},
               std::vector<std::string>{"--schedule", "own"});
  std::vector<std::string> words = pipeline;
  if (words.back() == "own") {
    words.back() = folder.write("own.sched", kOwnSchedule);
  }
  words.emplace_back("--verify");
  const TrainOutput output = train_json(words);
  CHECK(output.verify == nlohmann::json{{"event", "verify"},
                                        {"bit_equal", true},
                                        {"max_abs_diff", 0.0},
                                        {"losses", 3},
                                        {"parameters", 39},
                                        {"buffers", 2}});
}

TEST_CASE("averages of weights are verified, saved, and go on from a checkpoint",
          "[tools][train][verify][weights]") {
  const TemporaryFolder folder;
  const std::string averages = folder.path() + "/averages.safetensors";
  const std::string checkpoint = folder.path() + "/a.ckpt";
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(),
                {"--average", "0.9", "--freeze-for", "layers.0.*=2", "--clip-value", "0.01"});
    return train_json(more);
  };
  const auto read = [](const std::string& path) {
    std::map<std::string, at::Tensor> all;
    for (const NamedTensor& t : read_weights(path)) {
      all.emplace(t.name, t.tensor);
    }
    return all;
  };
  const TrainOutput whole =
      run({"--stages", "2", "--verify", "--save-averages", "--save-weights", averages});
  CHECK(whole.verify.at("bit_equal") == true);
  CHECK(whole.verify.at("parameters") == 2 * 39);  // the averages too
  const auto averaged = read(averages);
  const std::string weights = folder.path() + "/weights.safetensors";
  (void)run({"--stages", "2", "--save-weights", weights});
  const auto trained = read(weights);
  REQUIRE(averaged.size() == trained.size());
  CHECK_FALSE(at::equal(averaged.at("head.weight"), trained.at("head.weight")));

  const std::string again = folder.path() + "/again.safetensors";
  (void)run({"--stages", "1", "--steps", "2", "--save", checkpoint});
  const TrainOutput rest = run({"--stages",
                                "2",
                                "--load",
                                checkpoint,
                                "--verify",
                                "--save-averages",
                                "--save-weights",
                                again});
  CHECK(rest.verify.at("bit_equal") == true);
  CHECK(rest.sha256() == whole.sha256());
  for (const auto& [name, tensor] : read(again)) {
    CHECK(at::equal(tensor, averaged.at(name)));
  }
  const CommandResult without = run_train({"--stages", "2", "--load", checkpoint});
  CHECK(without.exit_code == 2);
  CHECK_THAT(without.err, ContainsSubstring("--average"));
}

TEST_CASE("patterns and settings that cannot be had end a run before its first step",
          "[tools][train]") {
  const CommandResult nobody = run_train({"--stages", "2", "--freeze", "layer.0.*"});
  CHECK(nobody.exit_code == 2);
  CHECK_THAT(nobody.err, ContainsSubstring("--freeze") && ContainsSubstring("\"layer.0.*\""));
  const CommandResult later = run_train({"--stages", "2", "--freeze-for", "layer.0.*=2"});
  CHECK(later.exit_code == 2);
  CHECK_THAT(later.err, ContainsSubstring("--freeze-for") && ContainsSubstring("\"layer.0.*\""));
  const CommandResult all = run_train({"--stages", "2", "--freeze-for", "*=2"});
  CHECK(all.exit_code == 2);
  CHECK_THAT(all.err, ContainsSubstring("freeze every parameter"));
  const CommandResult nesterov = run_train({"--optimizer", "sgd", "--nesterov"});
  CHECK(nesterov.exit_code == 2);
  CHECK_THAT(nesterov.err, ContainsSubstring("nesterov needs a momentum"));
}

TEST_CASE("a file may place stages and split backwards as it likes", "[tools][train][verify]") {
  const TemporaryFolder folder;
  const char* text = GENERATE(kVSchedule, kSplitSchedule);
  CAPTURE(text);
  const TrainOutput output = train_json(
      {"--schedule", folder.write("own.sched", text), "--microbatches", "2", "--verify"});
  CHECK(output.verify.at("bit_equal") == true);
}

TEST_CASE("a json run says each step and the end, in the keys programs rely on",
          "[tools][train][json]") {
  const TrainOutput output = train_json({"--stages", "2", "--steps", "4"});
  REQUIRE(output.steps.size() == 4);
  for (std::size_t i = 0; i < output.steps.size(); ++i) {
    const nlohmann::json& step = output.steps[i];
    CHECK(keys_of(step) == std::set<std::string>{"event",
                                                 "step",
                                                 "loss",
                                                 "tokens",
                                                 "seconds",
                                                 "bubble_fraction",
                                                 "learning_rate",
                                                 "gradient_norm"});
    CHECK(step.at("step") == i + 1);
    CHECK(step.at("tokens") == 2 * 4 * 16);
    CHECK(step.at("seconds").get<double>() > 0.0);
    CHECK(step.at("bubble_fraction").get<double>() >= 0.0);
    CHECK(step.at("bubble_fraction").get<double>() < 1.0);
  }
  CHECK(keys_of(output.done) ==
        std::set<std::string>{"event", "steps", "loss", "tokens_per_second", "weights_sha256"});
  CHECK(output.done.at("steps") == 4);
  CHECK(output.done.at("loss") == output.steps.back().at("loss"));
  CHECK(output.others.empty());
  REQUIRE(output.ranks.at("ranks").size() == 2);
  for (const nlohmann::json& rank : output.ranks.at("ranks")) {
    CHECK(rank.at("peak_bytes") > 0);
  }
}

TEST_CASE("the loss of the text falls", "[tools][train]") {
  const TrainOutput output = train_json({"--stages", "2", "--steps", "12", "--lr", "3e-3"});
  CHECK(output.steps.back().at("loss").get<double>() <
        output.steps.front().at("loss").get<double>() - 0.3);
}

TEST_CASE("a plain run prints a line per step, and a table per rank if asked to",
          "[tools][train]") {
  const CommandResult result = run_train({"--stages", "2", "--report"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  for (const char* text : {"step 1/3",
                           "step 3/3",
                           "tokens/s",
                           "bubble",
                           "slowest stage",
                           "ETA",
                           "waiting",
                           "peak activations",
                           "weights sha256"}) {
    CHECK_THAT(result.out, ContainsSubstring(text));
  }
  CHECK_THAT(result.out, !ContainsSubstring("\r"));
}

TEST_CASE("a run says what it does before its first step, and closes in ten lines",
          "[tools][train]") {
  const TemporaryFolder folder;
  const CommandResult result =
      run_train({"--stages", "2", "--accumulate", "2", "--warmup", "1", "--lr-schedule", "cosine"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  const std::size_t first_step = result.out.find("step 1/3");
  REQUIRE(first_step != std::string::npos);
  const std::string header = result.out.substr(0, first_step);
  for (const char* text : {"model      llama, ",
                           " k parameters; 2 stages, cut at its markers\n",
                           "schedule   1f1b on 2 ranks; 4 microbatches x 2 = 8 samples, 2 batches "
                           "a step\n",
                           "adamw, learning rate 0.0003, falls to 0 as a cosine after 1 step of "
                           "warm-up; until step 3\n",
                           "data       /usr/share/common-licenses/GPL-3\n",
                           "workers    2 threads on cpu\n",
                           "saves nothing: give --save-dir DIR\n"}) {
    CHECK_THAT(header, ContainsSubstring(text));
  }
  const std::string closing =
      result.out.substr(result.out.find('\n', result.out.find("step 3/3")) + 1);
  CHECK(std::ranges::count(closing, '\n') <= 10);
  for (const char* text :
       {"busiest: rank ", "makespan: ", "bubble in it: ", "a step: ", "done: step 3"}) {
    CHECK_THAT(closing, ContainsSubstring(text));
  }
  const std::string last = closing.substr(closing.find("done: step 3"));
  CHECK_THAT(last, ContainsSubstring("\nmore: --report, or --trace FILE and `stagecraft trace "));
  const CommandResult saving = run_train({"--stages", "2", "--save-dir", folder.path() + "/kept"});
  CHECK(saving.exit_code == 0);
  CHECK_THAT(saving.out, !ContainsSubstring("saves nothing"));
}

TEST_CASE("a run says how its learning rate changes", "[tools][train]") {
  const auto optimizer_line = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--stages", "2"});
    const CommandResult result = run_train(words);
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    const std::size_t begin = result.out.find("optimizer  ");
    return result.out.substr(begin, result.out.find('\n', begin) - begin);
  };
  CHECK_THAT(optimizer_line({"--lr-schedule", "linear"}),
             ContainsSubstring(", falls to 0 linearly; until step 3"));
  CHECK_THAT(optimizer_line({"--lr-schedule", "wsd"}),
             ContainsSubstring(", falls to 0 in the last step; until step 3"));
  CHECK_THAT(
      optimizer_line({"--lr-schedule", "wsd", "--decay-steps", "2", "--warmup", "1"}),
      ContainsSubstring(", falls to 0 in the last 2 steps after 1 step of warm-up; until step 3"));
  CHECK_THAT(
      optimizer_line({"--lr-schedule", "plateau", "--eval-every", "3", "--lr-factor", "0.5"}),
      ContainsSubstring(", times 0.5 on each plateau; until step 3"));
}

TEST_CASE("a quiet run prints its last line, and nothing beside it", "[tools][train]") {
  const CommandResult people = run_train({"--stages", "2", "--verify", "--quiet"});
  CAPTURE(people.out, people.err);
  CHECK(people.exit_code == 0);
  CHECK(people.err.empty());
  CHECK_THAT(people.out, Matches("done: step 3, loss [0-9.]+, [0-9]+ tokens/s\n"));
  const CommandResult programs = run_train({"--stages", "2", "--quiet", "--json"});
  CHECK(programs.exit_code == 0);
  CHECK(std::ranges::count(programs.out, '\n') == 1);
  CHECK(nlohmann::json::parse(programs.out).at("event") == "done");
  const CommandResult failed = run_train({"--stages", "2", "--quiet", "--freeze", "none.*"});
  CHECK(failed.exit_code == 2);
  CHECK_THAT(failed.err, ContainsSubstring("--freeze"));
  for (const char* option : {"--report", "--step-by-step", "--verbose"}) {
    CHECK(run_train({"--stages", "2", "--quiet", option}).exit_code == 2);
  }
}

TEST_CASE("lines of progress come every so many steps, and at the last", "[tools][train]") {
  const TrainOutput output = train_json({"--stages", "2", "--steps", "5", "--log-every", "2"});
  std::vector<int> steps;
  for (const nlohmann::json& step : output.steps) {
    steps.push_back(step.at("step").get<int>());
  }
  CHECK(steps == std::vector{2, 4, 5});
  const CommandResult none = run_train({"--log-every", "0"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, ContainsSubstring("--log-every expects"));
}

TEST_CASE("a resumed run equals the unbroken one, also in another number of stages",
          "[tools][train][resume]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/half.ckpt";
  const std::vector<std::string> optimizer =
      GENERATE(std::vector<std::string>{},
               std::vector<std::string>{"--optimizer", "sgd", "--momentum", "0.9"});
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), optimizer.begin(), optimizer.end());
    return train_json(more);
  };
  const std::string whole = run({"--stages", "2", "--steps", "6"}).sha256();
  (void)run({"--stages", "2", "--steps", "3", "--save", file});
  REQUIRE(std::filesystem::exists(file));
  const TrainOutput resumed = run({"--stages", "2", "--steps", "6", "--load", file});
  CHECK(resumed.sha256() == whole);
  CHECK(resumed.steps.size() == 3);
  CHECK(resumed.steps.front().at("step") == 4);
  CHECK(run({"--stages", "4", "--steps", "6", "--load", file}).sha256() == whole);
  CHECK(run({"--stages", "1", "--steps", "6", "--load", file}).sha256() == whole);
}

TEST_CASE("verify continues from a checkpoint as the run does", "[tools][train][verify][resume]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/half.ckpt";
  (void)train_json({"--stages", "2", "--steps", "2", "--save", file});
  const TrainOutput output =
      train_json({"--stages", "4", "--steps", "4", "--load", file, "--verify"});
  CHECK(output.verify.at("bit_equal") == true);
  CHECK(output.verify.at("losses") == 2);
}

TEST_CASE("a step of several batches is bit-equal to one process, and is one step to all else",
          "[tools][train][verify][resume]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/half.ckpt";
  const std::vector<std::string> words{"--stages", "2", "--accumulate", "3", "--steps"};
  const auto run = [&](const std::string& steps, const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.push_back(steps);
    all.insert(all.end(), more.begin(), more.end());
    return train_json(all);
  };
  const TrainOutput whole = run("4", {"--verify"});
  CHECK(whole.verify.at("bit_equal") == true);
  REQUIRE(whole.steps.size() == 4);
  CHECK(whole.steps[0].at("tokens") ==
        3 * train_json({"--steps", "1"}).steps[0].at("tokens").get<int>());
  (void)run("2", {"--save", file});
  CHECK(run("4", {"--load", file}).sha256() == whole.sha256());
}

TEST_CASE("evaluations come at their steps and change nothing", "[tools][train][eval]") {
  const TrainOutput with = train_json({"--stages", "2", "--steps", "4", "--eval-every", "2"});
  REQUIRE(with.others.size() == 2);
  CHECK(with.others[0].at("event") == "eval");
  CHECK(with.others[0].at("step") == 2);
  CHECK(with.others[1].at("step") == 4);
  CHECK(with.others[1].at("loss").get<double>() > 0.0);
  CHECK(with.sha256() == train_json({"--stages", "2", "--steps", "4"}).sha256());
}

TEST_CASE("a rate falls where evaluations no longer improve, also in a run that continues",
          "[tools][train][eval]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/a.ckpt";
  const auto run = [&](const std::string& steps, const std::vector<std::string>& more) {
    std::vector<std::string> words{"--stages",
                                   "2",
                                   "--steps",
                                   steps,
                                   "--eval-every",
                                   "1",
                                   "--lr",
                                   "0.05",
                                   "--lr-schedule",
                                   "plateau",
                                   "--lr-factor",
                                   "0.5",
                                   "--lr-patience",
                                   "1",
                                   "--verify"};
    words.insert(words.end(), more.begin(), more.end());
    TrainOutput output = train_json(words);
    CHECK(output.verify.at("bit_equal") == true);
    std::erase_if(output.others, [](const auto& event) { return event.at("event") != "eval"; });
    return output;
  };
  const TrainOutput whole = run("6", {});
  REQUIRE(whole.others.size() == 6);
  double rate = 0.05, best = whole.others[0].at("loss");
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(whole.steps[i].at("learning_rate") == rate);
    const double loss = whole.others[i].at("loss");
    rate *= i > 0 && loss >= best ? 0.5 : 1.0;
    best = std::min(best, loss);
  }
  CHECK(rate < 0.05);
  (void)run("3", {"--save", file});
  const TrainOutput continued = run("6", {"--load", file});
  CHECK(continued.sha256() == whole.sha256());
  CHECK(continued.steps[0].at("learning_rate") == whole.steps[3].at("learning_rate"));
}

TEST_CASE("a dry run prints the plan and trains nothing", "[tools][train][dry-run]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/none.ckpt";
  const CommandResult result =
      run_train({"--stages", "2", "--dry-run", "--save", file, "--verbose"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  for (const char* text : {"stage0",
                           "stage1",
                           "1F3",
                           "1B3",
                           "instructions",
                           "weights",
                           "peak activations",
                           "operators",
                           "program",
                           "constants"}) {
    CHECK_THAT(result.out, ContainsSubstring(text));
  }
  CHECK_THAT(result.out, !ContainsSubstring("step 1/3"));
  CHECK_THAT(result.out, ContainsSubstring("compiled in ") && ContainsSubstring(" ms  capture\n"));
  CHECK_THAT(result.err,
             !ContainsSubstring("compiled in ") && ContainsSubstring("lowered in ") &&
                 ContainsSubstring(" ms  set waits\n"));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a dry run's plan is readable by programs", "[tools][train][dry-run]") {
  const CommandResult result = run_train({"--stages", "2", "--dry-run", "--json"});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json plan = nlohmann::json::parse(result.out);
  CHECK(plan.at("event") == "dry_run");
  REQUIRE(plan.at("stages").size() == 2);
  REQUIRE(plan.at("ranks").size() == 2);
  std::int64_t bytes = 0;
  for (const auto& stage : plan.at("stages")) {
    bytes += stage.at("weight_bytes").get<std::int64_t>();
    CHECK(stage.at("program_bytes").get<int>() > 1000);
    CHECK(stage.at("constant_bytes").get<int>() >= 0);
  }
  for (const auto& rank : plan.at("ranks")) {
    CHECK(rank.at("instructions").get<int>() > 0);
    CHECK(rank.at("peak_activation_bytes").get<std::int64_t>() > 0);
    bytes -= rank.at("weight_bytes").get<std::int64_t>();
  }
  CHECK(bytes == 0);
}

TEST_CASE("a step that takes longer than its deadline fails, and the option is named",
          "[tools][train]") {
  CHECK(TrainerOptions{}.step_deadline == std::chrono::seconds(300));  // the value in --help
  // The run takes seconds on any machine.
  const CommandResult result = run_train({"--stages",
                                          "2",
                                          "--dim",
                                          "256",
                                          "--seq",
                                          "64",
                                          "--microbatches",
                                          "64",
                                          "--step-deadline",
                                          "0.05"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err,
             ContainsSubstring("step 1 failed: the step was not done within 50 ms") &&
                 ContainsSubstring("set a longer --step-deadline"));
}

}  // namespace stagecraft::tests
