#include <filesystem>

#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

const ModelOptions kModel{.dropout = 0.2};

struct RunOptions {
  std::string schedule = "1f1b";
  Optimizer optimizer = AdamW{.lr = 1e-2};
  ModelOptions model = kModel;
  std::uint64_t seed = 9;
  bool mirror = false;
};

/// Holds a trainer of this many stages with all that it needs; its ranks can be made to fail.
struct ResumableRun {
  explicit ResumableRun(int stages, RunOptions options = {})
      : program(make_program([&] {
          options.model.stages = stages;
          return options.model;
        }())),
        cluster(Cluster::local(stages)),
        trainer(
            cluster,
            program,
            make_schedule(options.schedule, program),
            options.optimizer,
            {.learning_rate = {.kind = LearningRate::Kind::Cosine, .warmup = 1, .total_steps = 10},
             .clip = 1.0,
             .seed = options.seed,
             .mirror = options.mirror,
             .before_instruction = hook_of(failing)}) {}

  void train(std::int64_t until) {
    while (trainer.steps() < until) {
      (void)step_of(trainer, trainer.steps()).get();
    }
  }

  Program program;
  std::shared_ptr<FailingRank> failing = std::make_shared<FailingRank>();
  Cluster cluster;
  Trainer trainer;
};

TEST_CASE("a resumed run equals the unbroken one bit by bit, also with another cut and schedule",
          "[integration][checkpoint]") {
  const int before = GENERATE(1, 2);
  const int after = GENERATE(1, 2, 4);
  CAPTURE(before, after);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";

  ResumableRun unbroken(before);
  unbroken.train(2);
  unbroken.trainer.save(path);
  unbroken.train(5);

  ResumableRun resumed(after, {.schedule = "gpipe"});
  resumed.train(1);  // some state to be replaced
  resumed.trainer.load(path);
  CHECK(resumed.trainer.steps() == 2);
  resumed.train(5);
  CHECK(same_bits(resumed.trainer.state_dict(), unbroken.trainer.state_dict()));
  // Buffers are equal too: both write the same checkpoint except for the order of its entries.
  const Data batch = data(0);
  CHECK(resumed.trainer.evaluate(batch.inputs, batch.labels) ==
        unbroken.trainer.evaluate(batch.inputs, batch.labels));
}

TEST_CASE("a parameter of several stages is saved once, and any cut takes it up",
          "[integration][checkpoint][ties]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const RunOptions options{.optimizer = Sgd{.lr = 0.1, .momentum = 0.9},
                           .model = {.dropout = 0.2, .tied = true},
                           .mirror = true};
  ResumableRun four(4, options);
  four.train(2);
  four.trainer.save(path);
  const StateDict saved = four.trainer.state_dict();
  four.train(4);
  const auto largest = [](const at::Tensor& t) { return t.abs().max().item<double>(); };
  for (const int stages : {4, 2}) {
    CAPTURE(stages);
    ResumableRun run(stages, options);
    run.train(1);
    run.trainer.load(path);
    CHECK(same_bits(run.trainer.state_dict(), saved));
    run.train(4);
    const StateDict found = run.trainer.state_dict();
    const StateDict expected = four.trainer.state_dict();
    CHECK((stages != 4 || same_bits(found, expected)));
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {  // sums of other parts: the bits differ
      CAPTURE(found[i].first);
      CHECK(found[i].first == expected[i].first);
      CHECK(largest(found[i].second - expected[i].second) <= 1e-5 * largest(expected[i].second));
    }
    CHECK(run.trainer.recover() == 4);
    CHECK(same_bits(run.trainer.state_dict(), found));
  }
}

TEST_CASE("saving and loading change nothing by themselves", "[integration][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  ResumableRun a(2), b(2);
  a.train(3);
  b.train(2);
  b.trainer.save(path);
  b.trainer.load(path);
  b.train(3);
  CHECK(same_bits(a.trainer.state_dict(), b.trainer.state_dict()));
}

TEST_CASE("a checkpoint that does not fit changes nothing", "[integration][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  ResumableRun run(2);
  run.train(1);
  const StateDict before = run.trainer.state_dict();
  Errc expected = Errc::CheckpointMismatch;
  SECTION("of another model") {
    ModelOptions other = kModel;
    other.classes = 7;
    ResumableRun(2, {.model = other}).trainer.save(path);
  }
  SECTION("of another optimizer") {
    ResumableRun(2, {.optimizer = Sgd{.momentum = 0.9}}).trainer.save(path);
  }
  SECTION("of another seed") {
    ResumableRun(2, {.seed = 8}).trainer.save(path);
  }
  SECTION("cut short") {
    run.trainer.save(path);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    expected = Errc::CheckpointFormat;
  }
  SECTION("foreign") {
    folder.write("a.ckpt", "not a checkpoint");
    expected = Errc::CheckpointFormat;
  }
  SECTION("absent") {
    expected = Errc::UsageFile;
  }
  CHECK(thrown_by([&] { run.trainer.load(path); }) == expected);
  CHECK(run.trainer.steps() == 1);
  CHECK(same_bits(run.trainer.state_dict(), before));
  run.train(2);
}

TEST_CASE("a parameter no stage uses is kept, saved and loaded", "[integration][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  ResumableRun run(2);
  const StateDict weights = run.trainer.state_dict();
  const std::vector<std::string> names = run.program.parameter_names();
  REQUIRE(weights.size() > names.size());  // buffers come after the parameters
  bool spare = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(weights[i].first == names[i]);
    spare = spare || names[i] == "spare";
  }
  CHECK(spare);
  run.trainer.save(path);
  run.trainer.load(path);
  CHECK(same_bits(run.trainer.state_dict(), weights));
}

TEST_CASE("what state_dict returns is a copy", "[integration][checkpoint]") {
  ResumableRun run(2);
  const StateDict before = run.trainer.state_dict();
  StateDict scratch = run.trainer.state_dict();
  for (auto& [name, tensor] : scratch) {
    tensor.zero_();
  }
  CHECK(same_bits(run.trainer.state_dict(), before));
}

// ---- without a file: a neighbor keeps every rank's state ----------------------------------------

TEST_CASE("recover() brings back the last committed state, and the step is run again bit-equal",
          "[integration][mirror]") {
  const int stages = GENERATE(2, 4);
  CAPTURE(stages);
  ResumableRun unbroken(stages);
  unbroken.train(3);
  const StateDict after_three = unbroken.trainer.state_dict();
  unbroken.train(6);
  const StateDict after_six = unbroken.trainer.state_dict();

  ResumableRun run(stages, {.mirror = true});
  const Rank last(stages - 1);
  run.train(3);
  SECTION("after a step") {}
  SECTION("after a step that failed before its vote") {
    run.failing->fail_at(first(run.trainer.plan(), last, Op::Vote));
    CHECK_THROWS_AS((void)step_of(run.trainer, 3).get(), Error);
  }
  SECTION("after a step that failed inside the update of one rank, with another behind it") {
    run.failing->fail_at(first(run.trainer.plan(), last, Op::Update));
    const StepFuture lost = step_of(run.trainer, 3);
    const StepFuture behind = step_of(run.trainer, 4);
    CHECK(thrown_by([&] { (void)lost.get(); }) == Errc::WorkerLost);
    CHECK(thrown_by([&] { (void)behind.get(); }) == Errc::WorkerLost);
    CHECK(thrown_by([&] { (void)run.trainer.state_dict(); }) == Errc::WorkerLost);
  }
  SECTION("after failures in every step since the start") {
    run.trainer.recover();
    for (std::int64_t i = 3; i < 5; ++i) {
      run.failing->fail_at(first(run.trainer.plan(), Rank(0), Op::Update));
      CHECK_THROWS_AS((void)step_of(run.trainer, i).get(), Error);
      CHECK(run.trainer.recover() == i);
      run.train(i + 1);
    }
    run.failing->fail_at(first(run.trainer.plan(), Rank(0), Op::Update));
    CHECK_THROWS_AS((void)step_of(run.trainer, 5).get(), Error);
    CHECK(run.trainer.recover() == 5);
    run.train(6);
    CHECK(same_bits(run.trainer.state_dict(), after_six));
    return;
  }
  CHECK(run.trainer.recover() == 3);
  CHECK(run.trainer.steps() == 3);
  CHECK(same_bits(run.trainer.state_dict(), after_three));
  run.train(6);
  CHECK(same_bits(run.trainer.state_dict(), after_six));
  const Data batch = data(0);  // buffers too
  CHECK(run.trainer.evaluate(batch.inputs, batch.labels) ==
        unbroken.trainer.evaluate(batch.inputs, batch.labels));
}

TEST_CASE("recover() goes back to what was loaded, never to a state before it",
          "[integration][mirror]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  ResumableRun run(2, {.mirror = true});
  CHECK(run.trainer.recover() == 0);
  run.train(1);
  run.trainer.save(path);
  const StateDict saved = run.trainer.state_dict();
  run.train(4);
  run.trainer.load(path);
  CHECK(run.trainer.recover() == 1);
  CHECK(same_bits(run.trainer.state_dict(), saved));
}

TEST_CASE("a trainer without mirrors, or with one rank, says so", "[integration][mirror]") {
  ResumableRun without(2);
  without.train(1);
  CHECK(thrown_by([&] { (void)without.trainer.recover(); }) == Errc::UsageArgument);
  CHECK(without.trainer.steps() == 1);
  CHECK(thrown_by([] { ResumableRun alone(1, {.mirror = true}); }) == Errc::UsageArgument);
}

}  // namespace
}  // namespace stagecraft::tests
