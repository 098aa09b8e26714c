/// Tests the refusal of runs that need more memory than there is: it has the bill, and names what
/// would fit.
#include "stagecraft/tools/train/job/memory_check.h"

#include <sstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tools/train/decide/decide.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/job/memory_bill.h"
#include "stagecraft/tools/train/options/parse_options.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr double kActivations = 40e6;

/// A run as it is known before it starts.
struct PlannedRun {
  [[nodiscard]] MemoryBill bill() const { return {options, choice, work, kActivations}; }
  [[nodiscard]] double bytes_at_level(int level) const {
    PlannedRun shared = *this;
    shared.choice.copies = sharing_of(options.pipeline, static_cast<Sharing>(level));
    return shared.bill().to_run();
  }
  void check(double limit, bool gpus = false) const {
    check_memory(options, choice, work, kActivations, {{"the group", limit, gpus}});
  }
  [[nodiscard]] std::string refused(double limit, bool gpus = false) const {
    return refusal([&] { check(limit, gpus); }, Errc::DeviceOutOfMemory);
  }

  TrainOptions options;
  Choice choice;
  WorkBytes work;
};

PlannedRun planned(std::vector<std::string> words) {
  words.insert(words.end(), {"--dim", "64", "--heads", "2", "--ffn", "96", "--layers", "4"});
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  TrainOptions options = std::get<TrainOptions>(parse_train_options(words));
  options.run.force = true;  // the limits of the test count, not the machine's
  TrainJob job = make_job(options, find_start(options, console), console);
  WorkBytes work = job.work->bytes(job.choice.shape);
  return {std::move(options), std::move(job.choice), std::move(work)};
}

TEST_CASE("what the tightest limit does not leave is refused with the bill", "[tools][memory]") {
  const PlannedRun run = planned({});
  const double bytes = run.bill().to_run();
  check_memory(run.options, run.choice, run.work, kActivations, {});
  run.check(bytes);
  CHECK_THAT(run.refused(bytes - 1),
             ContainsSubstring("left by the group") && ContainsSubstring("weights of the model") &&
                 ContainsSubstring("optimizer states") &&
                 ContainsSubstring("activations of all ranks"));
}

TEST_CASE("a dry run needs the memory to compile", "[tools][memory]") {
  PlannedRun run = planned({});
  run.options.run.dry_run = true;
  run.check(run.bill().to_compile());
  CHECK_THAT(run.refused(run.bill().to_compile() - 1), ContainsSubstring("left by the group"));
}

TEST_CASE("the lowest level of sharing that fits is named", "[tools][memory][strategies]") {
  PlannedRun run = planned({"--ranks", "4", "--dp", "4"});
  run.options.pipeline.bucket_bytes = 20 << 10;
  for (int level = 1; level <= 3; ++level) {
    CAPTURE(level);
    const double bytes = run.bytes_at_level(level);
    REQUIRE(bytes < run.bytes_at_level(level - 1));
    run.work.on_stages = 0.0;  // as before the model is compiled
    CHECK_THAT(run.refused(bytes), ContainsSubstring("--zero " + std::to_string(level) + " may"));
    run.work.on_stages = run.work.parameters;
    CHECK_THAT(run.refused(bytes), ContainsSubstring("--zero " + std::to_string(level) + " would"));
  }
  const double least = run.bytes_at_level(3);
  CHECK_THAT(run.refused(least - 1), ContainsSubstring("; without activations "));
  CHECK_THAT(run.refused(1e6), ContainsSubstring(" even without activations"));
  run.choice.copies = sharing_of(run.options.pipeline, Sharing::Gradients);
  CHECK_THAT(run.refused(least), ContainsSubstring("--zero 3 would fit"));
}

TEST_CASE("masters are counted at every level, shared from level 1 on",
          "[tools][memory][strategies][masters]") {
  PlannedRun run = planned({"--ranks", "2", "--dp", "2"});
  run.options.pipeline.bucket_bytes = 20 << 10;
  const auto grown = [&](int level) {
    run.work.masters = 0.0;
    const double without = run.bytes_at_level(level);
    run.work.masters = 1 << 20;
    return run.bytes_at_level(level) - without;
  };
  for (int level = 1; level <= 3; ++level) {
    CAPTURE(level);
    CHECK(grown(0) - grown(level) == Catch::Approx(1 << 20));  // one copy of two less
  }
}

TEST_CASE("an evaluation holds two regions of divided experts, and of shared weights as a step",
          "[tools][memory][strategies]") {
  const auto with_evaluations = [](PlannedRun run) {
    run.options.run.eval_every = 1;
    return run.bill().to_run();
  };
  const PlannedRun shared = planned({"--ranks", "4", "--dp", "4", "--zero", "3"});
  CHECK(with_evaluations(shared) == shared.bill().to_run());
  const PlannedRun divided = planned({"--model", "moe", "--ranks", "4", "--ep", "4"});
  REQUIRE(divided.work.region == divided.work.experts / 4);  // one in each layer
  CHECK(with_evaluations(divided) - divided.bill().to_run() ==
        Catch::Approx(4 * 2 * divided.work.region));
}

TEST_CASE("a level whose check adds in rounds must have room for them",
          "[tools][memory][strategies]") {
  PlannedRun run = planned({"--ranks", "4", "--dp", "4", "--verify"});
  run.options.pipeline.bucket_bytes = 20 << 10;
  run.work.on_stages = run.work.parameters;
  run.work.one_process = {.trainings = 2, .sums = 1.0};
  const double bytes = run.bytes_at_level(2);
  CHECK_THAT(run.refused(bytes), !ContainsSubstring("--zero 2 would"));
  run.work.one_process.trainings = 1;
  CHECK_THAT(run.refused(run.bytes_at_level(2)), ContainsSubstring("--zero 2 would"));
}

TEST_CASE("what keeps less of activations is named unless it is in use", "[tools][memory]") {
  const auto advice = [](const std::vector<std::string>& words) {
    const PlannedRun run = planned(words);
    return run.refused(run.bill().to_run() - 1);
  };
  CHECK_THAT(advice({}),
             ContainsSubstring(": --recompute stage, --precision bf16, a smaller --microbatch-size "
                               "or more stages keep less of them"));
  CHECK_THAT(advice({"--schedule", "gpipe"}), ContainsSubstring(", --schedule 1f1b, a smaller "));
  const std::string lean = advice({"--recompute", "stage", "--precision", "bf16"});
  CHECK_THAT(lean,
             ContainsSubstring(": a smaller --microbatch-size or more stages keep less of them"));
}

TEST_CASE("no option is named that the command would refuse", "[tools][memory]") {
  const PlannedRun run = planned({"--schedule", "gpipe"});
  const double limit = run.bill().to_run() - 1;
  PlannedRun from_file = run;
  from_file.options.model.file = "model.pt2";
  CHECK_THAT(from_file.refused(limit),
             ContainsSubstring(", --precision bf16 if the model is in float32, --schedule 1f1b or "
                               "more stages keep less of them"));
  PlannedRun by_planner = run;
  by_planner.options.planner.name = "auto";
  CHECK_THAT(by_planner.refused(limit),
             ContainsSubstring(", a smaller --microbatch-size or more stages keep less of them") &&
                 !ContainsSubstring("--schedule"));
}

TEST_CASE("no level is named where copies cannot share", "[tools][memory][strategies]") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--ranks", "4"},
        {"--ranks", "4", "--dp", "2", "--device", "cuda", "--dry-run"}}) {
    PlannedRun run = planned(words);
    run.options.run.dry_run = false;
    const bool gpus = run.options.workers.device != "cpu";
    const double bytes = gpus ? run.bill().on_gpus() : run.bill().to_run();
    CHECK_THAT(run.refused(bytes - 1, gpus), !ContainsSubstring(" fit, with"));
  }
}

TEST_CASE("levels are named to copies in the schedule, too", "[tools][memory][strategies]") {
  PlannedRun chimera = planned({"--ranks", "2", "--schedule", "chimera"});
  chimera.options.pipeline.bucket_bytes = 20 << 10;
  for (const int level : {1, 2, 3}) {
    CHECK_THAT(chimera.refused(chimera.bytes_at_level(level)),
               ContainsSubstring("--zero " + std::to_string(level) + " "));
  }
  // Rank 0 ends its microbatches one by one, and rank 1 both at once.
  chimera.choice.schedule = Schedule::parse(
      "@microbatches 4\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 .   .   0B0 0F1 .   .   0B1 .   3F0 3F1 3B0 3B1 .   .\n"
      ".   1F0 1B0 .   .   1F1 1B1 .   2F0 2F1 .   .   .   2B0 2B1\n");
  CHECK_THAT(chimera.refused(chimera.bytes_at_level(1)), ContainsSubstring("--zero 1 "));
  CHECK_THAT(chimera.refused(chimera.bytes_at_level(2)), !ContainsSubstring(" fit, with"));
}

TEST_CASE("a strategy is told the option of its replicate", "[tools][memory][strategies]") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.path() + "/copies.strategy";
  const PlannedRun written = planned({"--ranks", "4", "--dp", "4", "--strategy-out", file});
  PlannedRun run = planned({"--strategy", file});
  CHECK_THAT(run.refused(written.bytes_at_level(1)),
             ContainsSubstring("shard_optimizer at each replicate"));
}

}  // namespace
}  // namespace stagecraft::tools
