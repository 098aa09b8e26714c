/// Tests `stagecraft train --plan`: the microbatches that a plan may choose from, and runs that
/// train with its choice.
#include "stagecraft/tools/train/decide/planned.h"

#include <algorithm>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/own_cache.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/train/run/train_run.h"
#include "stagecraft/tools/train/decide/planned_sizes.h"
#include "stagecraft/tools/train/options/parse_options.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using tools::PlannedSizes;
using tools::TrainOptions;

TrainOptions options_of(std::vector<std::string> words) {
  words.insert(words.begin(), {"--plan", "auto"});
  return std::get<TrainOptions>(tools::parse_train_options(words));
}

PlannedSizes planned_of(const std::vector<std::string>& words, int microbatches = 8) {
  const TrainOptions options = options_of(words);
  return tools::planned_sizes(
      options, tools::WorkShape::uncut(microbatches, options.pipeline.microbatch_size.value_or(4)));
}

std::vector<int> sizes_of(const std::vector<std::string>& words, int microbatches = 8) {
  return planned_of(words, microbatches).samples;
}

/// The machine's noise decides whether a plan has copies, which add gradients in another order.
void check_equal(const TrainOutput& output) {
  CHECK((output.verify.at("bit_equal") == true || output.verify.at("bit_equal_as_ranks") == true));
}

json event_of(const TrainOutput& output) {
  const auto found = std::ranges::find_if(
      output.others, [](const json& object) { return object.at("event") == "planned"; });
  REQUIRE(found != output.others.end());
  return *found;
}

/// Returns a run of a plan of 10 ms a step, made from costs with this noise.
tools::PlannedRun planned_with_noise(double noise) {
  PlanProposal best;
  best.step = 0.01;
  best.microbatches = 8;
  best.candidate.planner = "capslog";
  best.candidate.schedule_name = "1f1b";
  tools::PlannedRun run{.cut = {}, .request = {}, .best_first = {best}};
  run.request.costs.device.noise = noise;
  return run;
}

}  // namespace

TEST_CASE("a plan from noisy costs carries a warning to the end of its run",
          "[tools][train][plan][json]") {
  const std::vector<double> seconds{0.5, 0.012, 0.011, 0.010};  // the first one warms up
  const tools::PlannedRun noisy = planned_with_noise(1.11);
  CHECK(tools::planned_text(noisy, seconds) ==
        "planned 10.0 ms a step, measured 11.0 (+10.0 %; the profile had a noise of 111 %)\n");
  const json object = json::parse(tools::planned_json(noisy, seconds).dump());
  CHECK(object.at("noise") == 1.11);
  CHECK(object.at("measured_seconds") == 0.011);
  REQUIRE(object.at("warnings").size() == 1);
  CHECK_THAT(object.at("warnings").at(0).get<std::string>(),
             ContainsSubstring("a noise of 111 %") && ContainsSubstring("profile again"));

  const tools::PlannedRun calm = planned_with_noise(0.2);  // the most without a warning
  CHECK(tools::planned_text(calm, seconds) == "planned 10.0 ms a step, measured 11.0 (+10.0 %)\n");
  CHECK_FALSE(tools::planned_json(calm, seconds).contains("warnings"));
}

TEST_CASE("a plan chooses from half, as many and twice as many samples", "[tools][train][plan]") {
  CHECK(sizes_of({}) == std::vector{4, 2, 8});
  CHECK(sizes_of({}, 1) == std::vector{4, 2});  // twice as many would exceed the step
  CHECK(sizes_of({}, 7) == std::vector{4, 2});
  CHECK(sizes_of({"--model", "vit"}) == std::vector{4, 2, 8});
  const PlannedSizes odd = tools::planned_sizes(options_of({}), tools::WorkShape::uncut(8, 3));
  CHECK(odd.samples == std::vector{3, 6});
  CHECK(odd.note.empty());
}

TEST_CASE("what is said of microbatches is kept", "[tools][train][plan]") {
  CHECK(sizes_of({"--microbatch-size", "6"}) == std::vector{6});
  CHECK(sizes_of({"--microbatches", "8"}) == std::vector{4});
  CHECK(sizes_of({"--microbatch-size", "6", "--microbatch-sizes", "16,1"}) == std::vector{16, 1});
  CHECK(planned_of({"--microbatches", "8"}).note.empty());
}

TEST_CASE("where other microbatches would train something else, they stay, and it is said",
          "[tools][train][plan]") {
  const std::string model = GENERATE("clip", "moe");
  const PlannedSizes found = planned_of({"--model", model});
  CHECK(found.samples == std::vector{4});
  CHECK_THAT(found.note,
             ContainsSubstring("stay 8 of 4") && ContainsSubstring("the loss of " + model) &&
                 ContainsSubstring("--microbatch-sizes"));
  CHECK(sizes_of({"--model", model, "--microbatch-sizes", "2,4"}) == std::vector{2, 4});

  const PlannedSizes file = planned_of({"--model-file", "m.pt2", "--data", "d"}, 5);
  CHECK(file.samples.empty());
  CHECK_THAT(file.note, ContainsSubstring("microbatches stay as they are, 5 a step"));
}

TEST_CASE("sizes that make no plan are refused", "[tools][train][plan][bad-input]") {
  for (const char* sizes : {"3", "4,5", "64"}) {
    CHECK_THAT(refusal([&] {
                 (void)sizes_of({"--microbatch-sizes", sizes});
               }),
               ContainsSubstring("--microbatch-sizes expects divisors of 32"));
  }
  const CommandResult alone = run_train({"--microbatch-sizes", "2"});
  CHECK(alone.exit_code == 2);
  CHECK_THAT(alone.err, ContainsSubstring("--microbatch-sizes expects --plan, found none"));
  const CommandResult twice =
      run_train({"--plan", "capslog", "--ranks", "2", "--microbatch-sizes", "2,2"});
  CHECK(twice.exit_code == 2);
  CHECK_THAT(twice.err, ContainsSubstring("2 appears twice"));
}

TEST_CASE("a run trains in the microbatches that were planned, with the bits of one process",
          "[tools][train][plan][verify]") {
  const OwnCache cache;
  const std::vector<std::string> words{
      "--plan", "capslog", "--ranks", "2", "--microbatch-sizes", "1", "--verify"};
  const CommandResult first = run_train(words);
  CAPTURE(first.out, first.err);
  REQUIRE(first.exit_code == 0);
  CHECK_THAT(first.out, ContainsSubstring("planned: 8 microbatches of 1, "));
  CHECK_THAT(first.err, !ContainsSubstring("measured before"));

  // The second run measures nothing unless the machine was busy, and gives the same step the same
  // samples.
  const bool busy = first.err.find("the machine is busy") != std::string::npos;
  CHECK((first.out.find("the profile had a noise of") != std::string::npos) == busy);
  const CommandResult second = run_train(words);
  CHECK((second.err.find("plan: all was measured before") != std::string::npos) == !busy);
  const TrainOutput output = train_json(words);
  check_equal(output);
  const json planned = event_of(output);
  CHECK(planned.at("microbatches") == 8);
  CHECK(planned.at("microbatch_size") == 1);
  const TrainOutput given = train_json({"--stages", "2", "--verify"});
  CHECK(output.steps.front().at("tokens") == given.steps.front().at("tokens"));
  CHECK(output.steps.front().at("loss").get<double>() ==
        Catch::Approx(given.steps.front().at("loss").get<double>()).epsilon(1e-5));
}

TEST_CASE("a planned run has the weights of the same microbatches given", "[tools][train][plan]") {
  const OwnCache cache;
  const TrainOutput planned =
      train_json({"--plan", "capslog", "--ranks", "2", "--microbatch-sizes", "1"});
  // The machine's noise decides between a pipeline and two copies of one stage.
  const bool copies = event_of(planned).at("schedule").get<std::string>().ends_with(" dp=2");
  std::vector<std::string> words{"--ranks", "2", "--microbatch-size", "1"};
  words.insert(words.end(), {"--microbatches", copies ? "4" : "8", "--dp", copies ? "2" : "1"});
  const TrainOutput given = train_json(words);
  CHECK(planned.sha256() == given.sha256());
  CHECK(planned.sha256() != train_json({"--stages", "2"}).sha256());
}

TEST_CASE("where only small microbatches fit into memory, the plan takes them",
          "[tools][train][plan]") {
  const OwnCache cache;
  const std::vector<std::string> words{"--plan",
                                       "capslog",
                                       "--ranks",
                                       "2",
                                       "--seq",
                                       "256",
                                       "--microbatch-size",
                                       "8",
                                       "--microbatches",
                                       "2",
                                       "--memory-limit",
                                       "8M",
                                       "--steps",
                                       "1",
                                       "--verify",
                                       "--microbatch-sizes"};
  const auto from = [&](const char* sizes) {
    std::vector<std::string> all = words;
    all.emplace_back(sizes);
    return all;
  };
  const TrainOutput output = train_json(from("8,1"));
  check_equal(output);
  CHECK(event_of(output).at("microbatch_size") == 1);

  const CommandResult large = run_train(from("8"));  // at least 10 MiB on the fullest worker
  CAPTURE(large.out, large.err);
  CHECK(large.exit_code == 1);
  CHECK_THAT(large.err, ContainsSubstring("no plan of capslog fits the devices"));
}

}  // namespace stagecraft::tests
